#compdef quorate
# Completion of quorate for zsh, made by: python tools/write_completion.py

# Set below (commands), flags and valued (options with a value) to what may follow the command $1.
_quorate_command() {
  below=() flags=() valued=()
  case $1 in
    "quorate")
      below=('quickstart:Run a durable three-controller quorum and watch it.' 'server-start:Run a controller from Kafka'\''s properties file.' 'storage:Format a node'\''s log directories, or inspect them.' 'metadata-quorum:Describe the quorum and change its voters.' 'features:Show and change the cluster'\''s feature levels.' 'topics:List, describe, create, alter and delete topics.' 'configs:Describe and change configs, quotas and SCRAM credentials.' 'acls:List, add and remove access control entries.' 'cluster:Show nodes and APIs; remove registrations.' 'leader-election:Elect partition leaders.' 'reassign-partitions:Move partitions between brokers and directories.' 'log-dirs:Show the log directories of brokers.' 'delegation-tokens:Create, renew, expire and describe delegation tokens.' 'dump-log:Print the records of log segments and snapshots.' 'metadata-shell:Explore a snapshot or a log as a tree of files.' 'pipeline:Metadata logs as tables, history and answers (Spark).' 'sim:Simulate quorums with faults drawn from seeds.' 'completion:Print the completion file of bash, zsh or fish.')
      flags=('-h:Show the help.' '--help:Show the help.' '--version:Show the version.')
      valued=() ;;
    "quorate quickstart")
      below=()
      flags=('--tour:Run a guided tour of what the quorum can do, then exit' '--with-broker:Let a Kafka broker join, create a topic and use it, then exit' '--secure:Give a new quorum mutual TLS, SCRAM passwords and an authorizer, with certificates for trials, and show who is let in and who is refused' '-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.')
      valued=('--data:The data directory' '--controllers:Number of controllers of a new quorum') ;;
    "quorate server-start")
      below=()
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.')
      valued=('--override:Override a value of the file' '--log-format:Format of the log on stderr' '--log-level:Lowest level to log') ;;
    "quorate storage")
      below=('random-uuid:Print a random uuid for a cluster id or directory id.' 'format:Format the log directories of a node.' 'info:Show a node'\''s log directories and their problems; the exit code is 1 if there are any.' 'check:List what blocks a Quorate node with a file and its directories; changes nothing.' 'version-mapping:Show the feature levels of a release.' 'feature-dependencies:Show the other features that a feature level requires.')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=() ;;
    "quorate storage random-uuid")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=() ;;
    "quorate storage format")
      below=()
      flags=('--ignore-formatted:Skip formatted directories instead of failing' '-g:Skip formatted directories instead of failing' '--standalone:Create a dynamic quorum of this controller alone' '-s:Create a dynamic quorum of this controller alone' '--no-initial-controllers:Write no voter set' '-N:Write no voter set' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--config:The node'\''s properties file' '-c:The node'\''s properties file' '--cluster-id:The cluster id to use' '-t:The cluster id to use' '--add-scram:A SCRAM credential, e.g' '-S:A SCRAM credential, e.g' '--release-version:Use the feature levels of this release' '-r:Use the feature levels of this release' '--feature:A feature'\''s level, e.g' '-f:A feature'\''s level, e.g' '--initial-controllers:Create a dynamic quorum of id@host:port:directory-id,' '-I:Create a dynamic quorum of id@host:port:directory-id,' '--controller-quorum-voters:The same as id-directory-id@host:port,..., as an early version of KIP-853 has it') ;;
    "quorate storage info")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--config:The node'\''s properties file' '-c:The node'\''s properties file') ;;
    "quorate storage check")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--config:The properties file of the controller' '-c:The properties file of the controller') ;;
    "quorate storage version-mapping")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--release-version:The release to look up' '-r:The release to look up') ;;
    "quorate storage feature-dependencies")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--feature:A feature and its level, e.g' '-f:A feature and its level, e.g') ;;
    "quorate metadata-quorum")
      below=('describe:Describe the quorum in its leader'\''s view.' 'add-controller:Make the controller of the --command-config file a voter.' 'remove-controller:Make a voter an observer.' 'alter:Reach another voter set by single safe steps, each committed before the next.')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=('--timeout:Give up after this time' '--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file') ;;
    "quorate metadata-quorum describe")
      below=()
      flags=('--status:Print a summary of the quorum' '--replication:Print the progress of each replica, one per line' '--human-readable:Print times as '\''N ms ago'\''' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=() ;;
    "quorate metadata-quorum add-controller")
      below=()
      flags=('--dry-run:Print the change without making it' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--config:The new controller'\''s file, in place of --command-config') ;;
    "quorate metadata-quorum remove-controller")
      below=()
      flags=('--dry-run:Print the change without making it' '--unregister:Also remove its registration' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--controller-id:The controller'\''s node id' '-i:The controller'\''s node id' '--controller-directory-id:Its directory id' '--controller-uuid:Its directory id' '-d:Its directory id') ;;
    "quorate metadata-quorum alter")
      below=()
      flags=('--dry-run:Print the steps without taking them' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--target:The whole target voter set') ;;
    "quorate features")
      below=('describe:Show supported and finalized levels.' 'upgrade:Raise feature levels.' 'downgrade:Lower feature levels.' 'disable:Lower features to level 0.' 'version-mapping:Show the feature levels of a release.' 'feature-dependencies:Show the other features that a feature level requires.')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=('--timeout:Give up after this time' '--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file') ;;
    "quorate features describe")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--node-id:Ask this node instead of any') ;;
    "quorate features upgrade")
      below=()
      flags=('--dry-run:Check the change without making it' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--metadata:Deprecated' '--release-version:Set the feature levels of this release' '--release-software:Set the feature levels of this release' '--feature:A feature and its level') ;;
    "quorate features downgrade")
      below=()
      flags=('--dry-run:Check the change without making it' '--unsafe:Allow a change that may lose metadata' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--metadata:Deprecated' '--release-version:Set the feature levels of this release' '--release-software:Set the feature levels of this release' '--feature:A feature and its level') ;;
    "quorate features disable")
      below=()
      flags=('--unsafe:Allow a change that may lose metadata' '--dry-run:Check the change without making it' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--feature:A feature') ;;
    "quorate features version-mapping")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--release-version:The release to look up' '-r:The release to look up') ;;
    "quorate features feature-dependencies")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--feature:A feature and its level, e.g' '-f:A feature and its level, e.g') ;;
    "quorate topics")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--list:List all available topics' '--create:Create a new topic' '--delete:Delete the topics that match --topic' '--alter:Increase the number of partitions, or assign new ones' '--describe:Show details of the topics' '--under-replicated-partitions:With --describe' '--unavailable-partitions:With --describe' '--under-min-isr-partitions:With --describe' '--at-min-isr-partitions:With --describe' '--topics-with-overrides:With --describe' '--if-exists:No error if the topic does not exist' '--if-not-exists:No error if the topic exists' '--exclude-internal:Leave out internal topics' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--timeout:Give up after this time' '--topic:The topic' '--topic-id:The id of the topic to describe' '--config:A config of the new topic' '--delete-config:No longer supported' '--partitions:Partitions of the topic' '--replication-factor:Replicas of a partition' '--replica-assignment:The brokers of each partition, first the preferred leader' '--partition-size-limit-per-response:Most partitions of one response') ;;
    "quorate configs")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--describe:Show what is set for the entities' '--alter:Change the configs of an entity' '--all:With --describe' '--entity-default:The default entity of the type' '--client-defaults:The defaults of all clients' '--user-defaults:The defaults of all users' '--broker-defaults:The defaults of all brokers' '--ip-defaults:The defaults of all IP addresses' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--timeout:Give up after this time' '--entity-type:Type of entity' '--entity-name:Name of the entity' '--add-config:Configs to set' '--add-config-file:Properties file with configs to set' '--delete-config:Configs to remove' '--topic:The topic'\''s name' '--client:The client'\''s id' '--user:The user'\''s principal name' '--broker:The broker'\''s id' '--broker-logger:The id of the node whose loggers are meant' '--ip:The IP address' '--group:The group'\''s id' '--client-metrics:The name of the client metrics resource') ;;
    "quorate acls")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--list:List the entries of the resources' '--add:Add entries' '--remove:Remove entries' '--cluster:The cluster itself' '--producer:The entries that a producer needs' '--consumer:The entries that a consumer needs' '--idempotent:With --producer' '--force:Do not ask before removing' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--timeout:Give up after this time' '--topic:Topic' '--group:Group' '--transactional-id:Transactional id' '--delegation-token:Token' '--user-principal:A user as a resource' '--resource-pattern-type:How names match' '--operation:What is allowed or denied' '--allow-principal:Who is allowed' '--deny-principal:Who is denied' '--allow-host:From where' '--deny-host:From where' '--principal:With --list') ;;
    "quorate cluster")
      below=('cluster-id:Show the cluster'\''s id.' 'unregister:Remove the registration of a broker that is gone for good.' 'unregister-controller:Remove the registration of a controller that is gone for good.' 'list-endpoints:List the nodes and their addresses.' 'registrations:List the registered brokers and controllers, and mark those that are gone.' 'problems:Show what is wrong with the cluster: which node, what, and what to do.' 'events:Show the audit trails of controllers, merged in the order of time.' 'api-versions:Show the versions of the APIs that each node serves.')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=() ;;
    "quorate cluster cluster-id")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate cluster unregister")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--id:The broker'\''s id' '-i:The broker'\''s id' '--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate cluster unregister-controller")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--id:The controller'\''s id' '-i:The controller'\''s id' '--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate cluster list-endpoints")
      below=()
      flags=('--include-fenced-brokers:Fenced brokers too' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate cluster registrations")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate cluster problems")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--silent-after:A voter that has not fetched or caught up for this time has a problem' '--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate cluster events")
      below=()
      flags=('--failed:What was refused, as a whole or in part' '--follow:Go on until Ctrl-C' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--since:Not before a time, or a duration ago' '--principal:Of this one' '--api:This request' '--topic:Requests that name it' '--command-config:Client properties, for pages with TLS or users' '-c:Client properties, for pages with TLS or users') ;;
    "quorate cluster api-versions")
      below=()
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--bootstrap-server:Brokers to connect to first' '-b:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '-C:Controllers to connect to first' '--command-config:Client properties file' '-c:Client properties file' '--config:Deprecated' '--timeout:Give up after this time') ;;
    "quorate leader-election")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--all-topic-partitions:All partitions that need it' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--timeout:Give up after this time' '--admin.config:Deprecated' '--election-type:Elect the first replica, or any replica where there is no leader' '--topic:The topic' '--partition:The partition of --topic' '--path-to-json-file:Partitions as {"partitions"') ;;
    "quorate reassign-partitions")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--generate:Propose a reassignment' '--execute:Begin the reassignment of the file' '--verify:Show how far it is' '--cancel:Cancel the reassignment of the file' '--list:List the reassignments in progress' '--wait:Show the progress until the reassignment is complete' '--disable-rack-aware:Ignore the racks of the brokers' '--additional:In addition to reassignments in progress' '--preserve-throttles:Keep the throttles' '--disallow-replication-factor-change:Refuse a partition whose number of replicas would change' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--reassignment-json-file:{"version"' '--topics-to-move-json-file:{"version"' '--topic:In place of a file' '--from-broker:In place of a file' '--broker-list:The brokers that shall have the replicas' '--throttle:Limit of the traffic between brokers, at least 1 KB/s' '--replica-alter-log-dirs-throttle:Limit of the traffic between directories of a broker' '--timeout:How long to wait until directory moves begin') ;;
    "quorate log-dirs")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--describe:Describe the log directories' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--timeout:Give up after this time' '--topic-list:Only these topics' '--broker-list:Only these brokers') ;;
    "quorate delegation-tokens")
      below=()
      flags=('--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '--create:Create a token' '--renew:Let a token live longer' '--expire:Let a token end sooner' '--describe:Describe the tokens of --owner-principal' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--bootstrap-server:Brokers to connect to first' '--bootstrap-controller:Controllers to connect to first' '--bootstrap-controllers:Controllers to connect to first' '--command-config:Client properties file' '--timeout:Give up after this time' '--owner-principal:Whose tokens' '--renewer-principal:Who may renew it' '--max-life-time-period:-1' '--renew-time-period:-1' '--expiry-time-period:-1' '--hmac:The token'\''s HMAC') ;;
    "quorate dump-log")
      below=()
      flags=('--offsets-decoder:Decode records of the topic __consumer_offsets' '--transaction-log-decoder:Decode records of the topic __transaction_state' '--cluster-metadata-decoder:Decode records as cluster metadata' '--remote-log-metadata-decoder:Decode records of the topic __remote_log_metadata' '--share-group-state-decoder:Decode records of the topic __share_group_state' '--skip-record-metadata:Omit offsets, sizes and control records' '--print-data-log:Print the records' '--deep-iteration:Read records, not only batch headers' '--verify-index-only:Check indexes without printing them' '--index-sanity-check:Check indexes only as a node does at its start' '--json:Print JSON' '--version:Show the release of Kafka whose tool this is, and exit' '-h:Show this message and exit' '--help:Show this message and exit' '--json-schema:Show the schema of the JSON.')
      valued=('--files:Logs, snapshots and indexes to print' '--key-decoder-class:How a key becomes text' '--value-decoder-class:How a value becomes text' '--max-bytes:Read at most this many bytes of each file' '--max-message-size:Largest batch to which an index entry may point') ;;
    "quorate metadata-shell")
      below=('cat:Show the contents of metadata files.' 'find:Search for nodes in the directory hierarchy.' 'ls:List metadata nodes.' 'tree:Show the contents of metadata nodes in a tree structure.' 'diff:Show what differs between two points.')
      flags=('--redact:Hide credentials, tokens and sensitive configs' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=('-s:The metadata snapshot file to read' '--snapshot:The metadata snapshot file to read' '-d:A metadata log directory' '--directory:A metadata log directory' '-C:Controllers of a running quorum' '-q:Controllers of a running quorum' '--controllers:Controllers of a running quorum' '--bootstrap-controller:Controllers of a running quorum' '--bootstrap-controllers:Controllers of a running quorum' '--config:Client properties for --controllers' '--command-config:Client properties for --controllers' '--timeout:How long to wait for a leader' '--at-offset:Show the state after the record N' '--at-time:Show the state at a time, e.g') ;;
    "quorate pipeline")
      below=('ingest:Ingest logs and snapshots at PATHS into the warehouse.' 'stream:Ingest the committed records of clusters into the warehouse as they come.' 'history:Answer QUESTION from the warehouse; without one, list the questions.' 'who:Show who made changes, from the logs of the nodes, and how certain that is.' 'audit:Compare the replicas at PATHS: are they sound, what diverged, and at which byte?' 'report:Write one self-contained HTML page with pictures of the clusters in the warehouse.' 'compact:Join small files, and delete files that no table uses any more.' 'repair:Restore lost commits and files of the warehouse, or remove what cannot be restored.' 'campaign:Run seeds of the simulator as Spark tasks, with every check: a row of Parquet for each.' 'campaign-report:Compare versions by the results of their campaigns, of any size and from any machine.')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=() ;;
    "quorate pipeline ingest")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '--findings-exit-zero:Exit with 0 instead of 1 when the job did all its work and has findings' '--fail-fast:Ingest nothing when some of the input is bad' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--cluster:The logs at and below PATH are of the cluster NAME, whatever their cluster id is' '--cluster-id:For logs without a meta.properties beside them' '--up-to:Leave out what neither a majority of the voters nor a snapshot proves to be committed') ;;
    "quorate pipeline stream")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '--findings-exit-zero:Exit with 0 instead of 1 when the job did all its work and has findings' '--once:Ingest what is committed now, then end' '--fail-fast:End when some of the input is bad' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--cluster:The logs at and below PATH are of the cluster NAME, whatever their cluster id is' '--bootstrap-controllers:Live controllers of a cluster' '-b:Live controllers of a cluster' '--command-config:Client properties file' '--every:Time between the beginnings of two batches' '--max-records:The largest number of records of a batch' '--cluster-id:Refuse controllers of another cluster' '--up-to:With PATHS' '--timeout:End when no controller of a cluster has answered for so long' '--on-silence:When one of several clusters does not answer') ;;
    "quorate pipeline history")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--where:A condition on the columns of the answer' '--order-by:Sort the answer' '--limit:Rows to print at most' '--at:With a kind' '--cluster:Only this cluster') ;;
    "quorate pipeline who")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '--findings-exit-zero:Exit with 0 instead of 1 when the job did all its work and has findings' '--all:Also print what nodes did by themselves' '--out:Keep the whole answer in the warehouse, as table who' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--authorizer-log:kafka-authorizer.log, of the controllers and the brokers' '--request-log:kafka-request.log' '--controller-log:controller.log, for what controllers did by themselves' '--server-log:server.log, or any other log that contains such lines' '--cluster:The cluster of the logs' '--tz:The time zone of the logs' '--window:Longest time from an allowed request to its change' '--skew:Largest difference between the clocks of two nodes' '--pattern:The log4j layout, if it is not Kafka'\''s own' '--where:A condition on the columns of the answer' '--limit:Rows to print at most') ;;
    "quorate pipeline audit")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '--findings-exit-zero:Exit with 0 instead of 1 when the job did all its work and has findings' '--fail-fast:Stop at the first damage in a log' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--cluster:The logs at and below PATH are of the cluster NAME, whatever their cluster id is' '--cluster-id:For logs without a meta.properties beside them' '--out:Also write report.json there') ;;
    "quorate pipeline report")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--out:The HTML page to write' '--audit:Also show a report.json of `audit --out`' '--cluster:Only this cluster') ;;
    "quorate pipeline compact")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)' '--keep-hours:Delete files that are unused for so long' '--least-files:Join where there are at least so many') ;;
    "quorate pipeline repair")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--warehouse:The folder of the tables' '-w:The folder of the tables' '--format:The format of the tables' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)') ;;
    "quorate pipeline campaign")
      below=()
      flags=('--resume:Continue in a folder that has results' '--ship:Send this code to the workers, or use the installed one' '--no-ship:Send this code to the workers, or use the installed one' '--quiet:Print no progress to stderr' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--seeds:Which ones, B not included' '--out:A folder that all workers can access' '--batch:Seeds of a task, and of a file' '--max-failures:The largest number of failing seeds to trace and shrink' '--shrink-tries:The largest number of runs to shrink one' '--shrink-seconds:After this time, shrinking one starts no further run' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)') ;;
    "quorate pipeline campaign-report")
      below=()
      flags=('--quiet:Print no progress to stderr' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--html:Also write an HTML page' '--master:Spark'\''s master' '--conf:A setting of Spark' '--storage-option:A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL)') ;;
    "quorate sim")
      below=('run:Run seeds with every check on, up to the first that fails; exit code 1 then.' 'replay:Run one world again and print what happens; FILE holds a plan, as '\''sim plan'\'' prints it.' 'plan:Print the plan that a seed draws, for `sim replay`.' 'campaign:Run seeds with every check on and write a row of Parquet for each.' 'shrink:Remove from a failing world all that its failure does not need.' 'scenario:Play scenarios: commands and their expected outcomes; '\''-'\'' reads one from stdin.' 'explore:Search every state of a small quorum, breadth first, and check Raft'\''s invariants in each.' 'nemesis:Inject faults into a quorum of real processes on loopback, and check its invariants.')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.' '--json-schema:Show the schema of the JSON.')
      valued=() ;;
    "quorate sim run")
      below=()
      flags=('--controllers:Let the seeds draw worlds of whole controllers, with clients that write metadata' '--keep-going:Run all seeds even when one fails' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--seeds:Which ones, B not included' '--scenario:Let the seeds draw worlds of this simulation scenario of Kafka'\''s' '--jobs:Processes') ;;
    "quorate sim replay")
      below=()
      flags=('--quiet:Leave out the trace' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--html:Draw it' '--tla:Write it as the TLA+ module Run.tla, with Run.cfg beside it' '--against:Compare with a trace that this command has printed, and show where they part') ;;
    "quorate sim plan")
      below=()
      flags=('-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--scenario:Let the seeds draw worlds of this simulation scenario of Kafka'\''s') ;;
    "quorate sim campaign")
      below=()
      flags=('--resume:Go on in a directory that has results' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--seeds:Which ones, B not included' '--jobs:Processes' '--out:A directory' '--failures:Stop when so many seeds have failed, those of before --resume included') ;;
    "quorate sim shrink")
      below=()
      flags=('-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--out:Write it there instead of printing' '--tries:Run no more worlds than so many' '--seconds:Stop after so long, but finish the first world') ;;
    "quorate sim scenario")
      below=()
      flags=('--rewrite:Write the outcomes of now into the files' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=() ;;
    "quorate sim explore")
      below=('election' 'replication' 'stale' 'split' 'removal' 'joining')
      flags=('--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--depth:Most events' '--epochs:Leave out states in higher epochs' '--leaps:How often all timers of a replica expire' '--backoffs:How often the backoff of a replica ends' '--crashes:How often a replica crashes' '--fails:How often a message is lost and its sender is notified' '--losses:How often a follower loses the connection to its leader' '--proposals:How many records are proposed' '--changes:How often a client asks for a voter change' '--out:Write a scenario of the violated invariant to this file') ;;
    "quorate sim nemesis")
      below=()
      flags=('--mixed:Run a minority of Kafka'\''s controllers beside Quorate'\''s' '--json:Print JSON' '-h:Show this message and exit' '--help:Show this message and exit')
      valued=('--seconds:Duration of the faults' '--seed:Seed of the faults and clients' '--members:Number of nodes' '--only:Inject these kinds of faults only' '--kafka-libs:Kafka'\''s jars, for --mixed' '--keep:Keep all files in this new directory') ;;
    "quorate completion")
      below=('bash' 'zsh' 'fish')
      flags=('-h:Show this message and exit' '--help:Show this message and exit' '--version:Show the version.')
      valued=() ;;
  esac
}

# Set choices to the values of the option $2 of the command $1.
_quorate_choices() {
  choices=
  case "$1 $2" in
    "quorate server-start --log-format") choices='human json' ;;
    "quorate server-start --log-level") choices='debug info warning error' ;;
    "quorate features disable --feature") choices='kraft.version transaction.version group.version eligible.leader.replicas.version share.version streams.version' ;;
    "quorate configs --entity-type") choices='topics clients users brokers ips client-metrics groups broker-loggers' ;;
    "quorate acls --resource-pattern-type") choices='any match literal prefixed' ;;
    "quorate acls --operation") choices='All Read Write Create Delete Alter Describe ClusterAction DescribeConfigs AlterConfigs IdempotentWrite CreateTokens DescribeTokens TwoPhaseCommit' ;;
    "quorate leader-election --election-type") choices='preferred unclean' ;;
    "quorate dump-log --key-decoder-class") choices='org.apache.kafka.tools.api.StringDecoder org.apache.kafka.tools.api.IntegerDecoder org.apache.kafka.tools.api.LongDecoder org.apache.kafka.tools.api.DefaultDecoder' ;;
    "quorate dump-log --value-decoder-class") choices='org.apache.kafka.tools.api.StringDecoder org.apache.kafka.tools.api.IntegerDecoder org.apache.kafka.tools.api.LongDecoder org.apache.kafka.tools.api.DefaultDecoder' ;;
    "quorate pipeline ingest --format") choices='delta parquet' ;;
    "quorate pipeline ingest --up-to") choices='majority snapshot end' ;;
    "quorate pipeline stream --format") choices='delta parquet' ;;
    "quorate pipeline stream --up-to") choices='majority snapshot end' ;;
    "quorate pipeline stream --on-silence") choices='end wait' ;;
    "quorate pipeline history --format") choices='delta parquet' ;;
    "quorate pipeline who --format") choices='delta parquet' ;;
    "quorate pipeline report --format") choices='delta parquet' ;;
    "quorate pipeline compact --format") choices='delta parquet' ;;
    "quorate pipeline repair --format") choices='delta parquet' ;;
    "quorate sim nemesis --members") choices='3 5' ;;
    "quorate sim nemesis --only") choices='help kill power stop cut hold hold-in hold-out hold-pair delay reset slow-disk bad-disk remove replace' ;;
  esac
}

_quorate() {
  local place=quorate option= word choices
  local -a below flags valued
  _quorate_command quorate
  for word in "${(@)words[2,CURRENT-1]}"; do
    if [[ -n $option ]]; then
      option=
    elif (( ${valued[(I)$word:*]} )); then
      option=$word
    elif (( ${below[(I)$word|$word:*]} )); then
      place+=" $word"
      _quorate_command "$place"
    fi
  done
  if [[ -z $option && $PREFIX == -*=* ]]; then
    option=${PREFIX%%=*}
    compset -P '*='
  fi
  if [[ -n $option ]]; then
    _quorate_choices "$place" "$option"
    if [[ -n $choices ]]; then
      compadd -- ${=choices}
    else
      _files
    fi
  elif [[ $PREFIX == -* ]]; then
    _describe -o option valued -- flags
  elif (( $#below )); then
    _describe command below
  else
    _files
  fi
}

_quorate "$@"
