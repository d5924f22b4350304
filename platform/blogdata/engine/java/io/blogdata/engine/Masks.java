package io.blogdata.engine;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Gives a session a function that returns the keyed hash of a text: HMAC-SHA256, the first 32 hexadecimal digits.
 *
 * <p>The server reads the key. No plan, setting or message of a client has it; a plan shows the function's name.
 *
 * <p>Options: {@code function} (its name), {@code secret} (path of the secret's file on the server) and {@code purpose}
 * (what the hashes are for; those for two purposes cannot be compared). The relation is never read: its schema is empty.
 */
public final class Masks implements RelationProvider, DataSourceRegister {
  private static final String ALGORITHM = "HmacSHA256";
  private static final int DIGITS = 32;

  @Override
  public String shortName() {
    return "keyed-masks";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(CollectionConverters.asJava(parameters));
    byte[] secret = secret(Path.of(options.get("secret"))).getBytes(StandardCharsets.UTF_8);
    byte[] key = hash(secret, options.get("purpose"));
    SparkSession spark = (SparkSession) context.sparkSession();
    spark.udf().register(options.get("function"), new Mask(key), DataTypes.StringType);
    return Scala.relation(context, new StructType());
  }

  private static String secret(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException error) {
      throw new NoSecret(file.getFileName().toString());
    }
  }

  private static byte[] hash(byte[] key, String text) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("this Java cannot compute " + ALGORITHM, error);
    }
  }

  /** The function; its key is sent to the executors with their tasks. */
  private static final class Mask implements UDF1<String, String> {
    private final byte[] key;

    Mask(byte[] key) {
      this.key = key;
    }

    @Override
    public String call(String text) {
      if (text == null) {
        return null;
      }
      StringBuilder digits = new StringBuilder();
      for (byte part : hash(key, text)) {
        digits.append(String.format(Locale.ROOT, "%02x", part));
      }
      return digits.substring(0, DIGITS);
    }
  }

  /** Thrown when the server cannot read the secret; it names the secret, and no path. */
  private static final class NoSecret extends Refusal {
    NoSecret(String name) {
      super("BLOGDATA_NO_SECRET", "28000", name);
    }
  }
}
