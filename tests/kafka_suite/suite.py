"""Kafka's own published tests with controllers of another make.

Kafka publishes its tests as jars. Their harnesses create one class, `kafka.server.ControllerServer`; the
one in `java/` takes its place and runs a command as the controller. Brokers, clients and tests are Kafka's.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBS = ROOT / ".kafka" / "suite-libs"
CLASSES = ROOT / ".kafka" / "suite-classes"
LOG4J = HERE / "log4j2.xml"
JARS = ("kafka-tools", "kafka-clients-integration-tests", "kafka-server")
"""Whose tests run, all of them."""
SCALA_JAR = "kafka_2.13"
SCALA_CLASSES = re.compile(
    r"kafka\.(api|server)\.(AuthorizerIntegration|(SaslSsl|Ssl)AdminIntegration"
    r"|(Alter|Describe)UserScramCredentialsRequest\w*|DelegationTokenRequests\w*"
    r"|(Plaintext|Ssl|Sasl\w+|Group|DelegationToken)EndToEndAuthorization(WithOwner)?"
    r"|(Ssl|Sasl\w+)Consumer|SaslClientsWithInvalidCredentials"
    r"|SaslApiVersionsRequest|GssapiAuthentication)Test"
    r"|integration\.kafka\.api\.ClientOAuthIntegrationTest"
)
"""Which tests of the Scala jar run: those of security. Most others need no controller."""
CONTROLLER_CLASSES = re.compile(
    r"(unit\.)?kafka\.(admin|api|server)\.(PlaintextAdminIntegration|AddPartitions|RemoteTopicCrud"
    r"|(Create|Delete)TopicsRequest\w*|(Strict|Permissive|)ControllerMutationQuota"
    r"|(AllocateProducerIds|DescribeQuorum|DescribeCluster|AlterReplicaLogDirs)Request"
    r"|Dynamic(ConfigChange|BrokerReconfiguration)|LogDirFailure|ServerShutdown"
    r"|Transactions(Bounce)?|RequestQuota|ReplicationQuotas|LogRecovery"
    r"|epoch\.LeaderEpochIntegration)Test"
)
"""Which tests of the Scala jar run: those of requests that controllers decide."""
SCALA_RUNS = (SCALA_CLASSES, CONTROLLER_CLASSES)
KERBEROS = "java.security.jgss/sun.security.krb5"
"""What the Kerberos server of the tests changes in its JVM."""
IN_ONE_PROCESS = "brokers and controllers in one process"
CLASS_TIMEOUT_S = 1_800


@dataclass(frozen=True)
class Invocation:
    """One test with one set of parameters; `name` is Kafka's, e.g. `testPath()[1]`."""

    test_class: str
    name: str
    outcome: str
    """passed, failed, or aborted (brokers and controllers are to share a process)."""
    seconds: float
    reason: str = ""
    unique_id: str = ""


def controller_command(kind: str) -> list[str]:
    """The command that runs a controller of this kind: quorate or java."""
    if kind == "quorate":
        return [sys.executable, "-m", "quorate", "server-start"]
    log4j = f"-Dlog4j2.configurationFile={LOG4J}"
    return ["java", "-Xmx256m", log4j, "-cp", f"{LIBS}/*", "kafka.Kafka"]


def test_classes() -> list[str]:
    """The test classes of the jars, sorted."""
    from zipfile import ZipFile

    found = set()
    for name in (*JARS, SCALA_JAR):
        jar = next(LIBS.glob(f"{name}-*-test.jar"))
        with ZipFile(jar) as archive:
            for entry in archive.namelist():
                if re.fullmatch(r"(?:org|kafka|unit|integration)/[\w/]+Test\.class", entry):
                    test = entry.removesuffix(".class").replace("/", ".")
                    if name != SCALA_JAR or any(one.fullmatch(test) for one in SCALA_RUNS):
                        found.add(test)
    return sorted(found)


@functools.cache
def compiled() -> Path:
    """The folder with our ControllerServer, compiled when a source is newer."""
    assert shutil.which("javac"), "no javac on the PATH: Kafka's tests need a JDK, 17 or later"
    assert LIBS.is_dir(), "Kafka's test jars are not there: run 'make .kafka/suite.stamp'"
    sources = sorted((HERE / "java" / "kafka" / "server").glob("*.java"))
    made = CLASSES / "kafka" / "server" / "ControllerServer.class"
    newest = max(source.stat().st_mtime for source in sources)
    if not made.exists() or made.stat().st_mtime < newest:
        CLASSES.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-cp", f"{LIBS}/*", "-d", str(CLASSES), *map(str, sources)]
        subprocess.run(command, check=True, timeout=300)
    return CLASSES


def run(selectors: Iterable[str], controllers: str, reports: Path, timeout_s: float) -> Path:
    """Run what JUnit's selectors name, in one JVM. Returns the report, which `read` takes.

    Raises TimeoutExpired; AssertionError where there is no report.
    """
    reports = reports.resolve()
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    words = controller_command(controllers)
    command = [
        *("java", "-Xmx1g", f"-Dlog4j2.configurationFile={LOG4J}"),
        f"--add-opens={KERBEROS}=ALL-UNNAMED",
        f"-Dcontroller.command={' '.join(words)}",
        *("-cp", f"{compiled()}:{LIBS}/*"),
        *("org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"),
        *("--config", "junit.jupiter.extensions.autodetection.enabled=true"),
        *("--details", "none", "--reports-dir", str(reports), *selectors),
    ]
    with (reports / "console.log").open("wb") as log:
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}  # our principal builders
        subprocess.run(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            env=environment,
            cwd=reports,  # the Kerberos server leaves a folder behind
        )
    report = reports / "TEST-junit-jupiter.xml"
    assert report.exists(), f"no report: see {reports / 'console.log'}"
    return report


def run_class(name: str, controllers: str, out: Path, tries: int = 1) -> list[Invocation]:
    """Run a class, or read the reports of earlier runs. What failed runs again, up to `tries` times in all.

    Returns the best of each invocation. An empty list: it took too long.
    """
    found: dict[str, Invocation] = {}
    selectors = ["-c", name]
    for number in range(1, tries + 1):
        kept = out / controllers / (f"{name}.{number}.xml" if number > 1 else f"{name}.xml")
        if not kept.exists():
            work = out / controllers / f"{name}.work"
            try:
                report = run(selectors, controllers, work, CLASS_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                break
            report.replace(kept)
            shutil.rmtree(work)
        found = best(found, read(kept))
        failed = [one.unique_id for one in found.values() if one.outcome == "failed"]
        if not failed or not all(
            failed
        ):  # one without an id has no selector: the whole class failed
            break
        selectors = [word for unique_id in failed for word in ("--uid", unique_id)]
    return sorted(found.values(), key=_order)


def best(known: dict[str, Invocation], found: Iterable[Invocation]) -> dict[str, Invocation]:
    """The invocations of two runs by class and name; one that passed in either has passed."""
    better = dict(known)
    for one in found:
        key = f"{one.test_class}.{one.name}"
        if key not in known or known[key].outcome != "passed":
            better[key] = one
    return better


def _order(one: Invocation) -> tuple[str, str]:
    return one.test_class, one.name


def reports(name: str, controllers: str, out: Path) -> list[Path]:
    """The reports of a class, the first run first."""
    return sorted((out / controllers).glob(f"{name}.xml")) + sorted(
        (out / controllers).glob(f"{name}.[2-9].xml")
    )


def read(report: Path) -> list[Invocation]:
    """The invocations of a report, in the order of their names."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcome, reason = "passed", ""
        for kind in ("failure", "error"):
            problem = case.find(kind)
            if problem is not None:
                outcome = "failed"
                reason = problem.get("message") or (problem.text or "").strip().split("\n")[0]
        skipped = case.find("skipped")
        if skipped is not None:
            outcome = "aborted"
            reason = (skipped.text or "").strip().split("\n")[0]
        texts = "\n".join(out.text or "" for out in case.iter("system-out"))
        unique_id = re.search(r"^unique-id: (.*)$", texts, re.M)
        found.append(
            Invocation(
                case.get("classname") or "",
                case.get("name") or "",
                outcome,
                float(case.get("time") or 0),
                " ".join(reason.split())[:200],
                unique_id[1] if unique_id else "",
            )
        )
    return sorted(found, key=_order)


def default_out() -> Path:
    return Path(os.environ.get("QUORATE_KAFKA_SUITE", ROOT / "build" / "kafka-suite"))
