package dev.headgate.spark;

import java.util.HashMap;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Puts a {@link Gate} before every streaming source of a query that starts.
 *
 * <p>Spark finds this class by itself when the jar is on the driver's class path, since it is listed as a service, and thus beside
 * whatever {@code spark.sql.extensions} the job has; naming it there as well does no harm.
 *
 * <p>The job's script stays as it is, so the sources are swapped in the plan, and only there where a plan is about to be written
 * by a stream: earlier, {@code df.select("_metadata.file_path")} and the rules of other extensions must find the relations they
 * know. Batch reads are never touched, but for those of a backfill ({@link KafkaHistory}).
 */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
  private static volatile boolean inPlace;

  /** Whether a session was made with them, and they govern it. */
  static boolean areInPlace() {
    return inPlace;
  }

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    if (OtherSpark.isHere()) {
      return BoxedUnit.UNIT;
    }
    inPlace = true;
    Function1<SparkSession, Rule<LogicalPlan>> taker = session -> new TakeSettings();
    extensions.injectHintResolutionRule(taker); // of the rules that can be added, these alone come before sources are looked for
    Function1<SparkSession, Rule<LogicalPlan>> builder = session -> new GovernStreams();
    extensions.injectPostHocResolutionRule(builder);
    extensions.injectColumnar(session -> new StatePlans());
    PlannerProcess.start();
    return BoxedUnit.UNIT;
  }

  private static final class TakeSettings extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(() -> Plans.with(plan, JobSettings::isSaidOf, JobSettings::taken));
    }
  }

  private static final class GovernStreams extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      if (!(plan instanceof WriteToStream)) {
        return plan;
      }
      return AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(() -> Plans.with(plan, Extensions::isRelation, Extensions::governed));
    }
  }

  private static boolean isRelation(LogicalPlan node) {
    return Plans.isNamed(node, "StreamingRelation") || Plans.isNamed(node, "StreamingRelationV2");
  }

  /** Copies a relation with its table, or its V1 source, behind a gate; one that has it already comes back as it is. */
  private static LogicalPlan governed(LogicalPlan relation) {
    Object[] elements = Plans.elements(relation, (name, element) -> governed(relation, element));
    boolean changed = IntStream.range(0, elements.length).anyMatch(i -> elements[i] != relation.productElement(i));
    return changed ? relation.makeCopy(elements) : relation;
  }

  private static Object governed(LogicalPlan relation, Object element) {
    if (element instanceof SupportsRead && !(element instanceof Governed)) {
      Origin origin = originOf(relation);
      return table((Table) element, scan -> scan((Scan) scan, origin));
    }
    if (element instanceof DataSource) {
      return GatedProvider.disguise((DataSource) element, Origin.nameIn(relation), JobSettings.takenFrom(relation));
    }
    if (element instanceof CaseInsensitiveStringMap) {
      return JobSettings.without((CaseInsensitiveStringMap) element);
    }
    if (element instanceof Some<?> some && some.get() instanceof LogicalPlan plain && Plans.isNamed(plain, "StreamingRelation")) {
      return Option.apply(governed(plain)); // what Spark reads instead where spark.sql.streaming.disabledV2MicroBatchReaders names the source
    }
    return element;
  }

  private static Origin originOf(LogicalPlan relation) {
    var options = new HashMap<String, String>();
    for (int i = 0; i < relation.productArity(); i++) {
      if (relation.productElement(i) instanceof CaseInsensitiveStringMap given) {
        options.putAll(given.asCaseSensitiveMap());
      }
    }
    options.putAll(JobSettings.takenFrom(relation));
    return new Origin((String) Plans.element(relation, "sourceName"), Origin.nameIn(relation), options);
  }

  /** The table, with something else in the place of each scan of it. */
  static Table table(Table table, Instead scans) {
    return (Table)
        StandIn.of(
            table,
            (method, arguments) -> {
              if (!method.getName().equals("newScanBuilder")) {
                return Governed.forward(table, method, arguments);
              }
              Object options = KafkaReaders.waitingLess(table, (CaseInsensitiveStringMap) arguments[0]);
              Object builder = Governed.forward(table, method, new Object[] {options});
              return making(builder, "build", scans);
            });
  }

  /** What is put in the place of something. */
  interface Instead {
    Object of(Object made) throws Throwable;
  }

  /** A stand-in that puts something else in the place of what one of its methods makes. */
  static Object making(Object delegate, String maker, Instead instead) {
    return StandIn.of(
        delegate,
        (method, arguments) -> {
          Object made = Governed.forward(delegate, method, arguments);
          return method.getName().equals(maker) ? instead.of(made) : made;
        });
  }

  /** The stream of a query that starts: plain where a context was governed, and the one after it says that it is not to be. */
  static <S extends SparkDataStream> Object stream(Supplier<S> streams, Origin origin, String location) {
    boolean isPlain = PlannerProcess.begun && !PlannerProcess.known.getConf().getBoolean(PlannerProcess.ENABLED, true);
    return isPlain ? streams.get() : Gate.before(streams, origin, location);
  }

  private static Scan scan(Scan scan, Origin origin) {
    return (Scan)
        StandIn.of(
            scan,
            (method, arguments) -> {
              switch (method.getName()) {
                case "toMicroBatchStream":
                  String location = (String) arguments[0];
                  return stream(() -> scan.toMicroBatchStream(location), origin, location);
                case "columnarSupportMode":
                  return KafkaReaders.areWantedFor(scan) ? Scan.ColumnarSupportMode.PARTITION_DEFINED : scan.columnarSupportMode();
                default:
                  return Governed.forward(scan, method, arguments);
              }
            });
  }
}
