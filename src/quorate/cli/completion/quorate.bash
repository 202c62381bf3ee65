# Completion of quorate for bash, made by: python tools/write_completion.py

# Set commands, flags and valued (options with a value) to what may follow the command $1.
_quorate_command() {
  case $1 in
    "quorate")
      commands='quickstart server-start storage metadata-quorum features topics configs acls cluster leader-election reassign-partitions log-dirs delegation-tokens dump-log metadata-shell pipeline sim completion'
      flags='-h --help --version'
      valued='' ;;
    "quorate quickstart")
      commands=''
      flags='--tour --with-broker --secure -h --help --version'
      valued='--data --controllers' ;;
    "quorate server-start")
      commands=''
      flags='-h --help --version'
      valued='--override --log-format --log-level' ;;
    "quorate storage")
      commands='random-uuid format info check version-mapping feature-dependencies'
      flags='-h --help --version --json-schema'
      valued='' ;;
    "quorate storage random-uuid")
      commands=''
      flags='--json -h --help'
      valued='' ;;
    "quorate storage format")
      commands=''
      flags='--ignore-formatted -g --standalone -s --no-initial-controllers -N --json -h --help'
      valued='--config -c --cluster-id -t --add-scram -S --release-version -r --feature -f --initial-controllers -I --controller-quorum-voters' ;;
    "quorate storage info")
      commands=''
      flags='--json -h --help'
      valued='--config -c' ;;
    "quorate storage check")
      commands=''
      flags='--json -h --help'
      valued='--config -c' ;;
    "quorate storage version-mapping")
      commands=''
      flags='--json -h --help'
      valued='--release-version -r' ;;
    "quorate storage feature-dependencies")
      commands=''
      flags='--json -h --help'
      valued='--feature -f' ;;
    "quorate metadata-quorum")
      commands='describe add-controller remove-controller alter'
      flags='-h --help --version --json-schema'
      valued='--timeout --bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config' ;;
    "quorate metadata-quorum describe")
      commands=''
      flags='--status --replication --human-readable --json -h --help'
      valued='' ;;
    "quorate metadata-quorum add-controller")
      commands=''
      flags='--dry-run --json -h --help'
      valued='--config' ;;
    "quorate metadata-quorum remove-controller")
      commands=''
      flags='--dry-run --unregister --json -h --help'
      valued='--controller-id -i --controller-directory-id --controller-uuid -d' ;;
    "quorate metadata-quorum alter")
      commands=''
      flags='--dry-run --json -h --help'
      valued='--target' ;;
    "quorate features")
      commands='describe upgrade downgrade disable version-mapping feature-dependencies'
      flags='-h --help --version --json-schema'
      valued='--timeout --bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config' ;;
    "quorate features describe")
      commands=''
      flags='--json -h --help'
      valued='--node-id' ;;
    "quorate features upgrade")
      commands=''
      flags='--dry-run --json -h --help'
      valued='--metadata --release-version --release-software --feature' ;;
    "quorate features downgrade")
      commands=''
      flags='--dry-run --unsafe --json -h --help'
      valued='--metadata --release-version --release-software --feature' ;;
    "quorate features disable")
      commands=''
      flags='--unsafe --dry-run --json -h --help'
      valued='--feature' ;;
    "quorate features version-mapping")
      commands=''
      flags='--json -h --help'
      valued='--release-version -r' ;;
    "quorate features feature-dependencies")
      commands=''
      flags='--json -h --help'
      valued='--feature -f' ;;
    "quorate topics")
      commands=''
      flags='--json --version --list --create --delete --alter --describe --under-replicated-partitions --unavailable-partitions --under-min-isr-partitions --at-min-isr-partitions --topics-with-overrides --if-exists --if-not-exists --exclude-internal -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --timeout --topic --topic-id --config --delete-config --partitions --replication-factor --replica-assignment --partition-size-limit-per-response' ;;
    "quorate configs")
      commands=''
      flags='--json --version --describe --alter --all --entity-default --client-defaults --user-defaults --broker-defaults --ip-defaults -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --timeout --entity-type --entity-name --add-config --add-config-file --delete-config --topic --client --user --broker --broker-logger --ip --group --client-metrics' ;;
    "quorate acls")
      commands=''
      flags='--json --version --list --add --remove --cluster --producer --consumer --idempotent --force -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --timeout --topic --group --transactional-id --delegation-token --user-principal --resource-pattern-type --operation --allow-principal --deny-principal --allow-host --deny-host --principal' ;;
    "quorate cluster")
      commands='cluster-id unregister unregister-controller list-endpoints registrations problems events api-versions'
      flags='-h --help --version --json-schema'
      valued='' ;;
    "quorate cluster cluster-id")
      commands=''
      flags='--json -h --help'
      valued='--bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate cluster unregister")
      commands=''
      flags='--json -h --help'
      valued='--id -i --bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate cluster unregister-controller")
      commands=''
      flags='--json -h --help'
      valued='--id -i --bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate cluster list-endpoints")
      commands=''
      flags='--include-fenced-brokers --json -h --help'
      valued='--bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate cluster registrations")
      commands=''
      flags='--json -h --help'
      valued='--bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate cluster problems")
      commands=''
      flags='--json -h --help'
      valued='--silent-after --bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate cluster events")
      commands=''
      flags='--failed --follow --json -h --help'
      valued='--since --principal --api --topic --command-config -c' ;;
    "quorate cluster api-versions")
      commands=''
      flags='--json -h --help'
      valued='--bootstrap-server -b --bootstrap-controller --bootstrap-controllers -C --command-config -c --config --timeout' ;;
    "quorate leader-election")
      commands=''
      flags='--json --version --all-topic-partitions -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --timeout --admin.config --election-type --topic --partition --path-to-json-file' ;;
    "quorate reassign-partitions")
      commands=''
      flags='--json --version --generate --execute --verify --cancel --list --wait --disable-rack-aware --additional --preserve-throttles --disallow-replication-factor-change -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --reassignment-json-file --topics-to-move-json-file --topic --from-broker --broker-list --throttle --replica-alter-log-dirs-throttle --timeout' ;;
    "quorate log-dirs")
      commands=''
      flags='--json --version --describe -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --timeout --topic-list --broker-list' ;;
    "quorate delegation-tokens")
      commands=''
      flags='--json --version --create --renew --expire --describe -h --help --json-schema'
      valued='--bootstrap-server --bootstrap-controller --bootstrap-controllers --command-config --timeout --owner-principal --renewer-principal --max-life-time-period --renew-time-period --expiry-time-period --hmac' ;;
    "quorate dump-log")
      commands=''
      flags='--offsets-decoder --transaction-log-decoder --cluster-metadata-decoder --remote-log-metadata-decoder --share-group-state-decoder --skip-record-metadata --print-data-log --deep-iteration --verify-index-only --index-sanity-check --json --version -h --help --json-schema'
      valued='--files --key-decoder-class --value-decoder-class --max-bytes --max-message-size' ;;
    "quorate metadata-shell")
      commands='cat find ls tree diff'
      flags='--redact --json -h --help --version --json-schema'
      valued='-s --snapshot -d --directory -C -q --controllers --bootstrap-controller --bootstrap-controllers --config --command-config --timeout --at-offset --at-time' ;;
    "quorate pipeline")
      commands='ingest stream history who audit report compact repair campaign campaign-report'
      flags='-h --help --version --json-schema'
      valued='' ;;
    "quorate pipeline ingest")
      commands=''
      flags='--quiet --json --findings-exit-zero --fail-fast -h --help'
      valued='--warehouse -w --format --master --conf --storage-option --cluster --cluster-id --up-to' ;;
    "quorate pipeline stream")
      commands=''
      flags='--quiet --json --findings-exit-zero --once --fail-fast -h --help'
      valued='--warehouse -w --format --master --conf --storage-option --cluster --bootstrap-controllers -b --command-config --every --max-records --cluster-id --up-to --timeout --on-silence' ;;
    "quorate pipeline history")
      commands=''
      flags='--quiet --json -h --help'
      valued='--warehouse -w --format --master --conf --storage-option --where --order-by --limit --at --cluster' ;;
    "quorate pipeline who")
      commands=''
      flags='--quiet --json --findings-exit-zero --all --out -h --help'
      valued='--warehouse -w --format --master --conf --storage-option --authorizer-log --request-log --controller-log --server-log --cluster --tz --window --skew --pattern --where --limit' ;;
    "quorate pipeline audit")
      commands=''
      flags='--quiet --json --findings-exit-zero --fail-fast -h --help'
      valued='--master --conf --storage-option --cluster --cluster-id --out' ;;
    "quorate pipeline report")
      commands=''
      flags='--quiet --json -h --help'
      valued='--warehouse -w --format --master --conf --storage-option --out --audit --cluster' ;;
    "quorate pipeline compact")
      commands=''
      flags='--quiet --json -h --help'
      valued='--warehouse -w --format --master --conf --storage-option --keep-hours --least-files' ;;
    "quorate pipeline repair")
      commands=''
      flags='--quiet --json -h --help'
      valued='--warehouse -w --format --master --conf --storage-option' ;;
    "quorate pipeline campaign")
      commands=''
      flags='--resume --ship --no-ship --quiet --json -h --help'
      valued='--seeds --out --batch --max-failures --shrink-tries --shrink-seconds --master --conf --storage-option' ;;
    "quorate pipeline campaign-report")
      commands=''
      flags='--quiet --json -h --help'
      valued='--html --master --conf --storage-option' ;;
    "quorate sim")
      commands='run replay plan campaign shrink scenario explore nemesis'
      flags='-h --help --version --json-schema'
      valued='' ;;
    "quorate sim run")
      commands=''
      flags='--controllers --keep-going --json -h --help'
      valued='--seeds --scenario --jobs' ;;
    "quorate sim replay")
      commands=''
      flags='--quiet -h --help'
      valued='--html --tla --against' ;;
    "quorate sim plan")
      commands=''
      flags='-h --help'
      valued='--scenario' ;;
    "quorate sim campaign")
      commands=''
      flags='--resume --json -h --help'
      valued='--seeds --jobs --out --failures' ;;
    "quorate sim shrink")
      commands=''
      flags='-h --help'
      valued='--out --tries --seconds' ;;
    "quorate sim scenario")
      commands=''
      flags='--rewrite -h --help'
      valued='' ;;
    "quorate sim explore")
      commands='election replication stale split removal joining'
      flags='--json -h --help'
      valued='--depth --epochs --leaps --backoffs --crashes --fails --losses --proposals --changes --out' ;;
    "quorate sim nemesis")
      commands=''
      flags='--mixed --json -h --help'
      valued='--seconds --seed --members --only --kafka-libs --keep' ;;
    "quorate completion")
      commands='bash zsh fish'
      flags='-h --help --version'
      valued='' ;;
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
  local place=quorate option= head= word i commands flags valued choices words
  local cur=${COMP_WORDS[COMP_CWORD]}
  _quorate_command quorate
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then
      continue  # bash splits --option=VALUE into three words
    elif [[ -n $option ]]; then
      option=
    elif [[ " $valued " == *" $word "* ]]; then
      option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      place+=" $word"
      commands= flags= valued=
      _quorate_command "$place"
    fi
  done
  [[ $cur == '=' ]] && cur=
  if [[ -z $option && $cur == --*=* ]]; then
    option=${cur%%=*} head=${cur%%=*}= cur=${cur#*=}  # where COMP_WORDBREAKS has no '='
  fi
  if [[ -n $option ]]; then
    _quorate_choices "$place" "$option"
    words=$choices
  elif [[ $cur == -* ]]; then
    words="$valued $flags"
  else
    words=$commands
  fi
  COMPREPLY=($(compgen -P "$head" -W "$words" -- "$cur"))
}

# Without a word of ours, bash offers the names of files.
complete -o default -F _quorate quorate
