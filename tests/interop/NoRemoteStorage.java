import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** A remote storage that keeps nothing: a broker writes its metadata all the same. */
public class NoRemoteStorage implements RemoteStorageManager {
    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata m, LogSegmentData d) {
        return m.startOffset() % 4 == 0 ? Optional.empty() : Optional.of(new CustomMetadata(new byte[3]));
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata m, int start) {
        return new ByteArrayInputStream(new byte[0]);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata m, int start, int end) {
        return new ByteArrayInputStream(new byte[0]);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata m, IndexType type) {
        return new ByteArrayInputStream(new byte[0]);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata m) {
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void close() {
    }
}
