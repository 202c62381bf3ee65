import java.io.File;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;

/** Writes a segment of compressed batches: of each codec one within a block, and one of many blocks. */
public class CompressedLogs {
    private static final int RECORDS = 8;
    private static final int LARGE = 2_000;

    public static void main(String[] args) throws Exception {
        long offset = 0;
        try (FileRecords log = FileRecords.open(new File(args[0]))) {
            for (CompressionType codec : CompressionType.values())
                for (int words : codec == CompressionType.NONE ? List.<Integer>of() : List.of(1, LARGE)) {
                    log.append(batch(codec, offset, words));
                    offset += RECORDS;
                }
        }
    }

    private static MemoryRecords batch(CompressionType codec, long offset, int words) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024),
            Compression.of(codec).build(), TimestampType.CREATE_TIME, offset);
        for (int i = 0; i < RECORDS; i++) {
            StringBuilder value = new StringBuilder();
            for (int word = 0; word < words; word++) value.append("word ").append(i * word % 97).append('.');
            Header[] headers = {new RecordHeader("h", new byte[] {1})};
            builder.append(1000 + i, ("key " + i).getBytes(), value.toString().getBytes(), headers);
        }
        return builder.build();
    }
}
