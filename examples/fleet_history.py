# %% [markdown]
# # What happened to these clusters?
#
# From log directories to answers and a picture, with sample logs of Kafka 4.3.1 from this
# repository. Opens as a notebook in VS Code, PyCharm or Jupyter (with Jupytext), and runs as a
# script:
#
#     python examples/fleet_history.py [warehouse] [log directory ...]
#
# Needs `pip install 'quorate[spark]'`. Your own directories replace the samples.

# %%
import sys
import tempfile
from pathlib import Path

from quorate.spark import session
from quorate.spark.history import register_views, state_at
from quorate.spark.report.svg import Bar, bands, colour
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store

words = [] if "ipykernel" in sys.modules else sys.argv[1:]  # a notebook has other arguments
here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
samples = here.resolve().parent / "tests/data/kafka-4.3.1"
warehouse = words[0] if words else tempfile.mkdtemp(prefix="fleet-history-")
logs = words[1:] or [str(samples / "d-divergent"), str(samples / "g-upgraded-v1")]

# %% [markdown]
# ## Ingest the logs
#
# Give all nodes of a cluster at once: they make one log. Records that were never committed, and
# damage, go to the table `quarantine` with file and byte. Ingesting the same logs again changes
# nothing.

# %%
spark = session("fleet-history")
summary = ingest(spark, logs, warehouse, notify=print)
for cluster_id, one in summary.clusters.items():
    print(
        f"{cluster_id}: {one.records} records, {one.events} events, in quarantine: {one.quarantined}"
    )

# %% [markdown]
# ## Query
#
# The views answer common questions; the tables take any SQL.

# %%
store = open_store(warehouse)
views = register_views(spark, store)
print("tables and views:", ", ".join(sorted(views)))
spark.sql("""
    SELECT cluster_id, elected, epoch, controller, controller_before, seconds_without_records
    FROM controller_failovers ORDER BY cluster_id, epoch
""").show(truncate=False)

# %% [markdown]
# Why did partitions get new leaders?

# %%
spark.sql("SELECT * FROM election_causes ORDER BY elections DESC").show(truncate=False)

# %% [markdown]
# Which topics had partitions with replicas out of sync, and for how long?

# %%
spark.sql("""
    SELECT cluster_id, topic_name, count(*) AS times, round(sum(seconds), 1) AS seconds
    FROM (
        SELECT *, unix_micros(valid_to_time) / 1e6 - unix_micros(valid_from_time) / 1e6 AS seconds
        FROM partitions WHERE size(isr) < size(replicas)
    )
    GROUP BY ALL ORDER BY times DESC, topic_name LIMIT 10
""").show(truncate=False)

# %% [markdown]
# What was the state in the middle of the log? Exactly what a replay of the log up to there gives.

# %%
cluster_id = max(summary.clusters, key=lambda id: summary.clusters[id].log_end_offset)
middle = summary.clusters[cluster_id].log_end_offset // 2
state_at(spark, store, "brokers", cluster_id, offset=middle).show(truncate=False)

# %% [markdown]
# The quarantine, with the location of each row:

# %%
spark.sql("""
    SELECT reason, node_id, offset, position, problem FROM quarantine ORDER BY offset LIMIT 5
""").show(truncate=False)

# %% [markdown]
# ## Draw
#
# The leaders of the partitions with the most leader changes. (`quorate pipeline report` makes a
# whole page of such pictures.)

# %%
rows = spark.sql(f"""
    WITH most AS (
        SELECT topic_name, partition FROM changes
        WHERE cluster_id = '{cluster_id}' AND event = 'leader changed'
        GROUP BY ALL ORDER BY count(*) DESC, topic_name, partition LIMIT 10
    )
    SELECT topic_name, partition, leader, unix_millis(from_time) AS start,
        unix_millis(from_time) + CAST(seconds * 1000 AS bigint) AS end
    FROM leader_timeline JOIN most USING (topic_name, partition)
    WHERE cluster_id = '{cluster_id}' ORDER BY topic_name, partition, start
""").collect()
last = max(max(row.start, row.end or 0) for row in rows)
bars = [
    Bar(
        f"{row.topic_name}-{row.partition}",
        row.start,
        row.end or last,
        f"led by {row.leader}",
        colour(row.leader),
    )
    for row in rows
]
picture = bands(bars, (min(bar.start for bar in bars), last))
out = Path(warehouse) / "leaders.svg"
out.write_text(picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
print("the picture is in", out)
if "ipykernel" in sys.modules:
    from IPython.display import SVG, display

    display(SVG(out.read_text()))
