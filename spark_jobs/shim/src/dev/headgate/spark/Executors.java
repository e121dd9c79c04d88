package dev.headgate.spark;

import java.util.Arrays;
import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ExecutorDecommissionInfo;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The executors of a running context: which there are, how many there should be, which may go.
 *
 * <p>The way that Spark's own dynamic allocation takes. Names are joined by commas, so that each question is one call from Python.
 */
public final class Executors {
  private Executors() {}

  /** Whether there can be more or fewer of them while the context lives; in local mode there are none. */
  public static boolean areChangeable(SparkContext context) {
    return context.schedulerBackend() instanceof ExecutorAllocationClient;
  }

  /** The names of those that have registered and have not left. */
  public static String names(SparkContext context) {
    return client(context).getExecutorIds().mkString(",");
  }

  /** Asks the cluster for so many in all; Spark goes on asking for what is missing, and takes none away. */
  public static void request(SparkContext context, int total) {
    context.requestTotalExecutors(total, 0, Map$.MODULE$.<String, Object>empty());
  }

  /**
   * Lets executors go that are not to be replaced, and returns which ones will.
   *
   * <p>One that runs a task stays, unless decommissioning is enabled: then it takes no new task, hands its blocks on and goes by
   * itself.
   */
  public static String release(SparkContext context, String names) {
    String[] leaving = names.split(",");
    if (context.getConf().getBoolean("spark.decommission.enabled", false)) {
      return client(context).decommissionExecutors(withReason(leaving), false, false).mkString(",");
    }
    var asked = CollectionConverters.asScala(Arrays.asList(leaving)).toSeq();
    return client(context).killExecutors(asked, false, false, false).mkString(",");
  }

  @SuppressWarnings("unchecked")
  private static Tuple2<String, ExecutorDecommissionInfo>[] withReason(String[] names) {
    var reason = new ExecutorDecommissionInfo("fewer executors are wanted", Option.empty());
    return Arrays.stream(names).map(name -> new Tuple2<>(name, reason)).toArray(Tuple2[]::new);
  }

  private static ExecutorAllocationClient client(SparkContext context) {
    return (ExecutorAllocationClient) context.schedulerBackend();
  }
}
