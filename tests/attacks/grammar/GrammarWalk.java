package io.blogdata.attacks;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.Vocabulary;
import org.antlr.v4.runtime.atn.ATN;
import org.antlr.v4.runtime.atn.ATNState;
import org.antlr.v4.runtime.atn.RuleStopState;
import org.antlr.v4.runtime.atn.RuleTransition;
import org.antlr.v4.runtime.atn.Transition;

/**
 * Writes random texts of a generated parser's grammar, as {@code rule TAB text} lines: so many of each alternative of
 * each given rule. Some are none for the parser: its semantic predicates are not followed.
 *
 * <p>Arguments: class of the parser, seed, texts of each alternative, most random tokens of one, rules and words; both
 * lists are separated by commas.
 */
public final class GrammarWalk {
  private static final int NEVER = 1_000_000;
  private final ATN atn;
  private final Vocabulary vocabulary;
  private final Random random;
  private final List<String> words;
  private final int[] least;
  private final int most;
  private final int hyphens;

  private GrammarWalk(
      ATN atn, Vocabulary vocabulary, List<String> rules, long seed, int most, List<String> words) {
    this.atn = atn;
    this.hyphens = rules.indexOf("errorCapturingIdentifierExtra");
    int parameter = rules.indexOf("parameterMarker");
    this.vocabulary = vocabulary;
    this.random = new Random(seed);
    this.most = most;
    this.words = words;
    this.least = new int[atn.states.size()];
    Arrays.fill(least, NEVER);
    boolean changed = true;
    while (changed) {
      changed = false;
      for (ATNState state : atn.states) {
        int found = state instanceof RuleStopState ? 0 : NEVER;
        for (Transition way : state.getTransitions()) {
          found = state instanceof RuleStopState ? 0 : Math.min(found, tokens(way));
        }
        // Nobody gives the values of parameters.
        found = state.ruleIndex == parameter ? NEVER : found;
        if (found < least[state.stateNumber]) {
          least[state.stateNumber] = found;
          changed = true;
        }
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    Class<?> parsers = Class.forName(arguments[0]);
    ATN atn = (ATN) parsers.getField("_ATN").get(null);
    Vocabulary vocabulary = (Vocabulary) parsers.getField("VOCABULARY").get(null);
    List<String> rules = Arrays.asList((String[]) parsers.getField("ruleNames").get(null));
    GrammarWalk walk =
        new GrammarWalk(
            atn,
            vocabulary,
            rules,
            Long.parseLong(arguments[1]),
            Integer.parseInt(arguments[3]),
            Arrays.asList(arguments[5].split(",")));
    StringBuilder lines = new StringBuilder();
    for (String name : arguments[4].split(",")) {
      ATNState start = atn.ruleToStartState[rules.indexOf(name)];
      while (start.getNumberOfTransitions() == 1) {
        start = start.transition(0).target;
      }
      for (Transition alternative : start.getTransitions()) {
        for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
          List<String> tokens = new ArrayList<>();
          walk.follow(alternative, tokens);
          lines.append(name).append('\t').append(String.join(" ", tokens)).append('\n');
        }
      }
    }
    System.out.print(lines);
  }

  /** Appends tokens from a state to the end of its rule. */
  private void walk(ATNState state, List<String> tokens) {
    while (!(state instanceof RuleStopState)) {
      Transition chosen = state.transition(0);
      // Names with hyphens are in the grammar only to be refused with a better message.
      if (tokens.size() < most && state.ruleIndex != hyphens) {
        List<Transition> ways = new ArrayList<>(Arrays.asList(state.getTransitions()));
        ways.removeIf(way -> tokens(way) == NEVER);
        chosen = ways.get(random.nextInt(ways.size()));
      } else {
        for (Transition way : state.getTransitions()) {
          chosen = tokens(way) < tokens(chosen) ? way : chosen;
        }
      }
      state = step(chosen, tokens);
    }
  }

  private void follow(Transition chosen, List<String> tokens) {
    walk(step(chosen, tokens), tokens);
  }

  private ATNState step(Transition chosen, List<String> tokens) {
    if (chosen instanceof RuleTransition) {
      walk(chosen.target, tokens);
      return ((RuleTransition) chosen).followState;
    }
    if (!chosen.isEpsilon()) {
      List<Integer> among = chosen.label() == null ? List.of() : chosen.label().toList();
      if (!among.isEmpty()) {
        tokens.add(text(among.get(random.nextInt(among.size()))));
      }
    }
    return chosen.target;
  }

  private int tokens(Transition way) {
    if (way instanceof RuleTransition) {
      return Math.min(NEVER, least[way.target.stateNumber] + least[((RuleTransition) way).followState.stateNumber]);
    }
    return Math.min(NEVER, (way.isEpsilon() ? 0 : 1) + least[way.target.stateNumber]);
  }

  private String text(int token) {
    if (token == Token.EOF) {
      return "";
    }
    String literal = vocabulary.getLiteralName(token);
    if (literal != null) {
      return literal.substring(1, literal.length() - 1);
    }
    String word = words.get(random.nextInt(words.size()));
    String name = String.valueOf(vocabulary.getSymbolicName(token));
    return FIXED.containsKey(name)
        ? FIXED.get(name)
        : name.endsWith("IDENTIFIER")
            ? (name.startsWith("BACK") || !word.matches("\\w+") ? "`" + word + "`" : word)
            : name.contains("STRING") ? "'" + word + "'" : name.matches(".*(VALUE|LITERAL)") ? "1" : name;
  }

  private static final Map<String, String> FIXED = new HashMap<>();

  static {
    FIXED.put("EQ", "=");
    FIXED.put("NEQ", "<>");
    FIXED.put("NEQJ", "!=");
    FIXED.put("NSEQ", "<=>");
    FIXED.put("LTE", "<=");
    FIXED.put("GTE", ">=");
    FIXED.put("BIGINT_LITERAL", "1L");
    FIXED.put("SMALLINT_LITERAL", "1S");
    FIXED.put("TINYINT_LITERAL", "1Y");
    FIXED.put("FLOAT_LITERAL", "1.0F");
    FIXED.put("DOUBLE_LITERAL", "1.0D");
    FIXED.put("BIGDECIMAL_LITERAL", "1.0BD");
    FIXED.put("DECIMAL_VALUE", "1.5");
    FIXED.put("EXPONENT_VALUE", "1E1");
  }
}
