package io.blogdata.engine;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Gives a session two functions that encrypt and decrypt texts by the name of a key: AES-256-GCM, with a text that the
 * value belongs to as associated data.
 *
 * <p>{@code encrypt(text, key, version, belongs to)} returns the version, a dot, and nonce, ciphertext and tag in
 * base64. The nonce is a keyed hash of both texts, so equal values that belong to the same have equal ciphertexts; that
 * two others share a nonce is as improbable as with random ones. {@code decrypt(text, key, belongs to)} takes the version from the text.
 *
 * <p>The server reads the keys. No plan, setting or message of a client has them; a plan shows their names.
 *
 * <p>Options: {@code encrypt} and {@code decrypt} (names of the functions), {@code keys} (JSON: a list of
 * {@code name}, {@code version} and {@code file}, the path on the server of the secret of that version). The relation is never read: its schema is empty.
 */
public final class Encryption implements RelationProvider, DataSourceRegister {
  private static final String CIPHER = "AES/GCM/NoPadding";
  private static final String HASH = "HmacSHA256";
  private static final int NONCE = 12;
  private static final int TAG_BITS = 128;
  private static final char DOT = '.';

  @Override
  public String shortName() {
    return "keyed-encryption";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(CollectionConverters.asJava(parameters));
    Keys keys = Keys.read(Json.read(options.get("keys"), KeyFile[].class));
    SparkSession spark = (SparkSession) context.sparkSession();
    spark.udf().register(options.get("encrypt"), new Encrypt(keys), DataTypes.StringType);
    spark.udf().register(options.get("decrypt"), new Decrypt(keys), DataTypes.StringType);
    return Scala.relation(context, new StructType());
  }

  private static byte[] hash(byte[] key, byte[]... parts) throws GeneralSecurityException {
    Mac mac = Mac.getInstance(HASH);
    mac.init(new SecretKeySpec(key, HASH));
    for (byte[] part : parts) {
      // With its length: no two pairs of texts are one message.
      mac.update(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).array());
      mac.update(part);
    }
    return mac.doFinal();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static Cipher cipher(int mode, Key key, byte[] nonce, String belongsTo) throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance(CIPHER);
    cipher.init(mode, new SecretKeySpec(key.encryption, "AES"), new GCMParameterSpec(TAG_BITS, nonce));
    cipher.updateAAD(bytes(belongsTo));
    return cipher;
  }

  /** The keys of one version of a secret: one for each purpose. */
  private static final class Key implements Serializable {
    private static final long serialVersionUID = 1;
    private final byte[] encryption;
    private final byte[] nonce;

    Key(byte[] secret) throws GeneralSecurityException {
      encryption = hash(secret, bytes("encryption"));
      nonce = hash(secret, bytes("nonce"));
    }
  }

  /** Where a version of a secret is on the server. */
  static final class KeyFile {
    @JsonProperty("name")
    String name;

    @JsonProperty("version")
    int version;

    @JsonProperty("file")
    String file;
  }

  /** All keys of a session by name and version; they are sent to the executors with their tasks. */
  private static final class Keys implements Serializable {
    private static final long serialVersionUID = 1;
    private final HashMap<String, HashMap<Integer, Key>> found = new HashMap<>();

    static Keys read(KeyFile[] files) {
      Keys keys = new Keys();
      for (KeyFile each : files) {
        keys.found
            .computeIfAbsent(each.name, name -> new HashMap<>())
            .put(each.version, of(each.name, each.version, Path.of(each.file)));
      }
      return keys;
    }

    private static Key of(String name, int version, Path file) {
      try {
        return new Key(bytes(Files.readString(file).strip()));
      } catch (IOException error) {
        throw new NoKey(name, version);
      } catch (GeneralSecurityException error) {
        throw impossible(error);
      }
    }

    Key get(String name, int version) {
      Key key = found.getOrDefault(name, new HashMap<>()).get(version);
      if (key == null) {
        throw new NoKey(name, version);
      }
      return key;
    }
  }

  private static IllegalStateException impossible(GeneralSecurityException error) {
    return new IllegalStateException("this Java cannot compute " + CIPHER + " or " + HASH, error);
  }

  private static final class Encrypt implements UDF4<String, String, Integer, String, String> {
    private final Keys keys;

    Encrypt(Keys keys) {
      this.keys = keys;
    }

    @Override
    public String call(String text, String name, Integer version, String belongsTo) {
      if (text == null) {
        return null;
      }
      Key key = keys.get(name, version);
      try {
        byte[] nonce = Arrays.copyOf(hash(key.nonce, bytes(belongsTo), bytes(text)), NONCE);
        byte[] encrypted = cipher(Cipher.ENCRYPT_MODE, key, nonce, belongsTo).doFinal(bytes(text));
        byte[] all = ByteBuffer.allocate(NONCE + encrypted.length).put(nonce).put(encrypted).array();
        return version.toString() + DOT + Base64.getUrlEncoder().withoutPadding().encodeToString(all);
      } catch (GeneralSecurityException error) {
        throw impossible(error);
      }
    }
  }

  private static final class Decrypt implements UDF3<String, String, String, String> {
    private final Keys keys;

    Decrypt(Keys keys) {
      this.keys = keys;
    }

    @Override
    public String call(String text, String name, String belongsTo) {
      if (text == null) {
        return null;
      }
      int version;
      byte[] all;
      try {
        int dot = text.indexOf(DOT);
        version = Integer.parseInt(text.substring(0, Math.max(dot, 0)));
        all = Base64.getUrlDecoder().decode(text.substring(dot + 1));
      } catch (IllegalArgumentException error) {
        throw new NotAuthentic(name, "it is no encrypted text");
      }
      Key key = keys.get(name, version);
      if (all.length < NONCE + TAG_BITS / Byte.SIZE) {
        throw new NotAuthentic(name, "it was cut");
      }
      try {
        Cipher cipher = cipher(Cipher.DECRYPT_MODE, key, Arrays.copyOf(all, NONCE), belongsTo);
        return new String(cipher.doFinal(all, NONCE, all.length - NONCE), StandardCharsets.UTF_8);
      } catch (AEADBadTagException error) {
        throw new NotAuthentic(
            name, "it was changed or moved, or is of another key than what version " + version + " is now");
      } catch (GeneralSecurityException error) {
        throw impossible(error);
      }
    }
  }

  /** Thrown when the server has no such key; it names the key, and no path. */
  private static final class NoKey extends Refusal {
    NoKey(String name, int version) {
      super("BLOGDATA_NO_KEY", "28000", "version " + version + " of the key " + name);
    }
  }

  /** Thrown for a text that is not what was encrypted; it has no value. */
  private static final class NotAuthentic extends Refusal {
    NotAuthentic(String name, String why) {
      super("BLOGDATA_NOT_AUTHENTIC", "22000", "a value encrypted by the key " + name + ": " + why);
    }
  }
}
