package io.blogdata.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.Protocol;
import org.apache.spark.sql.delta.actions.SetTransaction;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A Delta transaction that is audited when it is about to be committed, whichever of Delta's commands has filled it.
 *
 * <p>What the audit returns becomes the commit's metadata; when it throws, the log stays as it was.
 */
final class AuditedTransaction extends OptimisticTransaction {
  private final BiFunction<OptimisticTransaction, List<Action>, String> audit;
  private final List<SetTransaction> marks;
  private final Probe probe;
  private String info;

  /** The batch that is about to be written has been committed before. */
  static final class Repeated extends RuntimeException {}

  private AuditedTransaction(
      OptimisticTransaction begun,
      BiFunction<OptimisticTransaction, List<Action>, String> audit,
      List<SetTransaction> marks,
      Probe probe) {
    super(begun.deltaLog(), begun.catalogTable(), begun.snapshot());
    this.audit = audit;
    this.marks = marks;
    this.probe = probe;
  }

  /**
   * Takes the place of a transaction that has just begun.
   *
   * @param begun the transaction; it is not used any more
   * @param audit gives the commit's metadata, or throws
   * @param once tells this batch from its repetition
   * @param turn counts the batches of the table, whoever brings them; null where others do not matter
   * @param probe stops at the phases
   * @throws Repeated when the batch has been committed before
   * @throws TableMoved when it is another one's turn
   */
  static AuditedTransaction insteadOf(
      OptimisticTransaction begun,
      BiFunction<OptimisticTransaction, List<Action>, String> audit,
      SetTransaction once,
      SetTransaction turn,
      Probe probe) {
    List<SetTransaction> marks = turn == null ? List.of(once) : List.of(once, turn);
    AuditedTransaction transaction = new AuditedTransaction(begun, audit, marks, probe);
    // To ask is to depend on the answer: a twin that commits the same batch meanwhile makes this one fail.
    if (transaction.txnVersion(once.appId()) >= once.version()) {
      throw new Repeated();
    }
    if (turn != null) {
      // Here as well: whoever takes this turn meanwhile makes this one fail.
      TableMoved.unlessTurn(turn.version(), transaction.txnVersion(turn.appId()) + 1);
    }
    probe.reached("opened");
    return transaction;
  }

  @Override
  public Option<Object> commitImpl(
      Seq<Action> actions, DeltaOperations.Operation operation, boolean canSkipEmptyCommits, Map<String, String> tags) {
    List<Action> all = audited(CollectionConverters.asJava(actions).iterator());
    Option<Object> version = super.commitImpl(Scala.seq(all), operation, canSkipEmptyCommits, tags);
    probe.reached("committed");
    return version;
  }

  /** How a restoration commits: without a look at what came in between, so it fails when anything did. */
  @Override
  public Tuple2<Object, Snapshot> commitLarge(
      SparkSession spark,
      Iterator<Action> actions,
      Option<Protocol> newProtocol,
      DeltaOperations.Operation operation,
      Map<String, String> context,
      Map<String, String> metrics) {
    List<Action> all = audited(CollectionConverters.asJava(actions));
    Tuple2<Object, Snapshot> committed =
        super.commitLarge(
            spark, CollectionConverters.asScala(all.iterator()), newProtocol, operation, context, metrics);
    probe.reached("committed");
    return committed;
  }

  private List<Action> audited(java.util.Iterator<Action> actions) {
    probe.reached("written");
    List<Action> all = new ArrayList<>();
    actions.forEachRemaining(all::add);
    info = audit.apply(this, all);
    probe.reached("audited");
    all.addAll(marks);
    return all;
  }

  @Override
  public Option<String> getUserMetadata(DeltaOperations.Operation operation) {
    return Option.apply(info);
  }
}
