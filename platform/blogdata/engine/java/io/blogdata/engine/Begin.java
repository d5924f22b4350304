package io.blogdata.engine;

import java.util.function.UnaryOperator;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.NoOpTransactionExecutionObserver$;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.TransactionExecutionObserver;
import org.apache.spark.sql.delta.TransactionExecutionObserver$;
import scala.Function0;
import scala.Option;

/**
 * Replaces every transaction that a Delta command begins on a table.
 *
 * <p>Every one, not only the first: a merge that loses its materialized source begins another transaction.
 */
final class Begin implements TransactionExecutionObserver {
  private final DeltaLog log;
  private final UnaryOperator<OptimisticTransaction> instead;
  private Option<TransactionExecutionObserver> next = Option.empty();

  private Begin(DeltaLog log, UnaryOperator<OptimisticTransaction> instead) {
    this.log = log;
    this.instead = instead;
  }

  /** Runs a command, replacing each of its transactions on the table with the result of {@code instead}. */
  static void with(DeltaLog log, UnaryOperator<OptimisticTransaction> instead, Runnable command) {
    TransactionExecutionObserver before =
        (TransactionExecutionObserver) TransactionExecutionObserver$.MODULE$.getObserver();
    TransactionExecutionObserver$.MODULE$.setObserver(new Begin(log, instead));
    try {
      command.run();
    } finally {
      TransactionExecutionObserver$.MODULE$.setObserver(before);
    }
  }

  @Override
  public OptimisticTransaction startingTransaction(Function0<OptimisticTransaction> start) {
    OptimisticTransaction transaction = start.apply();
    boolean ours = transaction.deltaLog().dataPath().equals(log.dataPath());
    return ours ? instead.apply(transaction) : transaction;
  }

  @Override
  public TransactionExecutionObserver createChild() {
    return NoOpTransactionExecutionObserver$.MODULE$;
  }

  @Override
  public <T> T preparingCommit(Function0<T> prepare) {
    return prepare.apply();
  }

  @Override
  public void beginDoCommit() {}

  @Override
  public void beginBackfill() {}

  @Override
  public void beginPostCommit() {}

  @Override
  public void transactionCommitted() {}

  @Override
  public void transactionAborted() {}

  @Override
  public Option<TransactionExecutionObserver> nextObserver() {
    return next;
  }

  @Override
  public void nextObserver_$eq(Option<TransactionExecutionObserver> observer) {
    next = observer;
  }
}
