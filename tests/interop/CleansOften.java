package org.apache.kafka.common.utils; // where a Timer can be made

import java.util.function.Supplier;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;

/**
 * Kafka's own server that looks once a second whether old snapshots and segments may go.
 *
 * Kafka looks once a minute and has no key for it. All else is untouched: only the timer that is
 * asked for one minute runs for one second.
 */
public class CleansOften {
    private static long shortened(long ms) {
        return ms == 60_000 ? 1_000 : ms;
    }

    private static class ShortMinute extends Timer {
        ShortMinute(Time time, long ms) {
            super(time, shortened(ms));
        }

        @Override
        public void reset(long ms) {
            super.reset(shortened(ms));
        }
    }

    private static class ShortMinutes implements Time {
        @Override
        public long milliseconds() {
            return Time.SYSTEM.milliseconds();
        }

        @Override
        public long nanoseconds() {
            return Time.SYSTEM.nanoseconds();
        }

        @Override
        public void sleep(long ms) {
            Time.SYSTEM.sleep(ms);
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs)
                throws InterruptedException {
            Time.SYSTEM.waitObject(object, condition, deadlineMs);
        }

        @Override
        public Timer timer(long ms) {
            return new ShortMinute(this, ms);
        }
    }

    public static void main(String[] args) throws Exception {
        KafkaConfig config = KafkaConfig.fromProps(Utils.loadProps(args[0]), false);
        KafkaRaftServer server = new KafkaRaftServer(config, new ShortMinutes());
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        server.startup();
        server.awaitShutdown();
    }
}
