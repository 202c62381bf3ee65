"""Values that name files: what no file can be named is refused with key, file and line."""

import re

import pytest

from quorate.config.monitoring_settings import KEYS
from quorate.config.node_config import AUDIT_DIR
from quorate.config.paths import PATH_KEYS
from quorate.config.properties_file import read_settings
from quorate.config.settings import ConfigError
from quorate.config_definitions import table

NULS = ("\\u0000", "\0", "%00")
"""As an escape of a properties file, as it is, and as an escape of a URL."""
NOT_READ = {
    "num.recovery.threads.per.data.dir",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
}
"""A number, and files that a controller does not read."""
LIKE_A_PATH = re.compile(r"(^|\.)(dir|dirs|location|file|url)$")


@pytest.mark.parametrize("nul", NULS, ids=["escaped", "raw", "in a URL"])
@pytest.mark.parametrize("prefix", ["", "listener.name.controller."])
@pytest.mark.parametrize("key", PATH_KEYS)
def test_a_name_with_a_nul_is_refused(tmp_path, key, prefix, nul):
    is_url = key.endswith("url")
    value = f"{'file://' if is_url else ''}/data/a{nul}b"
    (path := tmp_path / "server.properties").write_text(f"a=b\n{prefix}{key}={value}\n")
    if nul == "%00" and not is_url:
        assert read_settings(path).values[prefix + key] == value
        return
    with pytest.raises(ConfigError) as refused:
        read_settings(path)
    shown = value if nul == "%00" else value.replace(nul, "\\x00")
    assert str(refused.value) == (
        f"Invalid value {shown} for configuration {prefix}{key}: No file has such a name "
        f"({path}, line 2)"
    )


def test_every_key_that_names_files_is_checked():
    names = {line.split()[0] for line in table.BROKER.splitlines()} | {*KEYS, AUDIT_DIR}
    like_paths = {name for name in names if LIKE_A_PATH.search(name)}
    names_of_paths = tuple(f".{key}" for key in PATH_KEYS)
    assert {name for name in like_paths if not f".{name}".endswith(names_of_paths)} == NOT_READ
