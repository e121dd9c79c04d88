package dev.headgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether somebody has said of a query what protects it or others: a rate limit, an alignment, {@code after}, a pause.
 *
 * <p>Such a query must not run on where nobody can plan it. It is here because the planner may never have been there to be asked; so this is read off what
 * planners go by as well: options, properties, control document. Only that it is said is looked at, not what: what makes no sense
 * protects too, and so does a document that cannot be read. One that is not there says nothing.
 */
final class Protection {
  private static final Logger LOG = LoggerFactory.getLogger(Protection.class);
  private static final String WORDS = "(?:rateLimit\\..+|alignment\\..+|after|paused)";
  private static final Pattern OPTION = Pattern.compile("headgate\\." + WORDS + "|(?!headgate\\.).*", Pattern.CASE_INSENSITIVE);
  private static final Set<String> MEMBERS = Set.of("rateLimit", "rateLimitDuringBacklog", "alignment", "after", "paused");

  private final StreamingQuery query;
  private boolean byOptions;
  private Boolean fromOutside;

  Protection(StreamingQuery query) {
    this.query = query;
  }

  /** The query has a source with these options. */
  void reads(Map<String, String> options) {
    byOptions |= byOptions(options);
  }

  /** Whether something protects it; {@code document} is the file of the control document, or null. Looked up once. */
  boolean holds(String document) {
    if (fromOutside == null) {
      String name = query.name() != null ? query.name() : query.id().toString();
      fromOutside = byProperties(JobSettings.ofSession(), name) || byDocument(document, name);
    }
    return byOptions || fromOutside;
  }

  /** Whether the properties of a session, or the control document, protect any query. */
  static boolean isSaidIn(Map<String, String> properties, String document) {
    return byProperties(properties, null) || byDocument(document, null);
  }

  /** By the options of a source that are ours; all that Flink has a name for does. */
  private static boolean byOptions(Map<String, String> options) {
    return JobSettings.in(options).entrySet().stream()
        .filter(option -> !option.getValue().strip().equalsIgnoreCase("false"))
        .anyMatch(option -> OPTION.matcher(option.getKey()).matches());
  }

  /** By the properties of its session: those of all queries, and those of the one with this name, or of any if it is null. */
  private static boolean byProperties(Map<String, String> properties, String query) {
    Pattern own = Pattern.compile(Pattern.quote(PlannerProcess.PROPERTIES) + "(?:queries\\." + (query == null ? ".+" : Pattern.quote(query)) + "\\.sources\\..+\\.)?" + WORDS);
    return properties.entrySet().stream()
        .filter(property -> !property.getValue().strip().equalsIgnoreCase("false"))
        .anyMatch(property -> own.matcher(property.getKey()).matches());
  }

  /** By what the control document in a file, which may be null, has for the query, or for any if it is null. */
  private static boolean byDocument(String file, String query) {
    if (file == null || Files.notExists(Path.of(file))) {
      return false;
    }
    try {
      JsonNode queries = Origin.JSON.readTree(Path.of(file).toFile()).path("queries");
      for (JsonNode each : query == null ? queries : List.of(queries.path(query))) {
        for (JsonNode source : each.path("sources")) {
          if (MEMBERS.stream().map(source::path).anyMatch(said -> !said.isMissingNode() && !said.isNull() && !said.toString().equals("false"))) {
            return true;
          }
        }
      }
      return false;
    } catch (IOException e) {
      LOG.warn("Headgate cannot read {}, and takes it that it protects query {}: {}", file, Objects.requireNonNullElse(query, "of any name"), e.toString());
      return true;
    }
  }
}
