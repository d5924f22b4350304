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
 * A Delta transaction that runs an audit before it commits, whichever Delta command has filled it.
 *
 * <p>The audit returns the commit's metadata; if it throws, nothing is committed.
 */
final class AuditedTransaction extends OptimisticTransaction {
  private final BiFunction<OptimisticTransaction, List<Action>, String> audit;
  private final List<SetTransaction> marks;
  private final Probe probe;
  private String info;

  /** Thrown when the batch has already been committed. */
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
   * Creates the audited transaction that replaces one that has just begun.
   *
   * @param begun the replaced transaction; it is not used any more
   * @param audit returns the commit's metadata, or throws
   * @param once identifies this batch, so that a retry of it is recognised
   * @param turn number of this batch among those of all writers of the table; null if other writers do not matter
   * @param probe pauses or fails the write at its phases in tests
   * @throws Repeated when the batch has already been committed
   * @throws TableMoved when another number is next
   */
  static AuditedTransaction insteadOf(
      OptimisticTransaction begun,
      BiFunction<OptimisticTransaction, List<Action>, String> audit,
      SetTransaction once,
      SetTransaction turn,
      Probe probe) {
    List<SetTransaction> marks = turn == null ? List.of(once) : List.of(once, turn);
    AuditedTransaction transaction = new AuditedTransaction(begun, audit, marks, probe);
    // Reading the version registers a conflict: if a twin commits the same batch meanwhile, this commit fails.
    if (transaction.txnVersion(once.appId()) >= once.version()) {
      throw new Repeated();
    }
    if (turn != null) {
      // This read too: if another writer takes this turn meanwhile, this commit fails.
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

  /** Commits a RESTORE: without conflict resolution, so it fails if any other commit came in between. */
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
