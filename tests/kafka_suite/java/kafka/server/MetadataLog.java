package kafka.server;

import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * The metadata log of a controller that runs as another process, read from its directory.
 *
 * The only voter of a quorum writes a record and commits it at once, so what the log holds is committed.
 */
final class MetadataLog {
    private static final Set<MetadataRecordType> TRANSACTIONS = EnumSet.of(MetadataRecordType.BEGIN_TRANSACTION_RECORD,
        MetadataRecordType.END_TRANSACTION_RECORD, MetadataRecordType.ABORT_TRANSACTION_RECORD);

    private MetadataLog() { }

    /** The image of all records of the log. */
    static MetadataImage image(String logDirectory) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        Path partition = Path.of(logDirectory, "__cluster_metadata-0");
        try (var files = Files.list(partition)) {
            List<Path> segments = files.filter(file -> file.toString().endsWith(".log")).sorted().toList();
            for (Path segment : segments)
                replay(segment, delta);
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
        return delta.apply(MetadataProvenance.EMPTY);
    }

    private static void replay(Path segment, MetadataDelta delta) {
        try (BatchFileReader batches = new BatchFileReader.Builder().setPath(segment.toString()).build()) {
            while (batches.hasNext()) {
                var found = batches.next();
                if (found.isControl())
                    continue;
                for (ApiMessageAndVersion record : found.batch().records()) {
                    if (!TRANSACTIONS.contains(MetadataRecordType.fromId(record.message().apiKey())))
                        delta.replay(record.message());
                }
            }
        } catch (Exception error) {
            throw new RuntimeException(segment.toString(), error);
        }
    }
}
