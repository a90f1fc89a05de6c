"""Log files for Kafka processes, bounded: a sandbox may run for days on memory-backed volumes.

Kafka 4 logs through log4j 2, earlier versions through reload4j; each gets its own dialect of the same wish: INFO,
one file of 8 MB and one before it.
"""

from dataclasses import dataclass
from pathlib import Path

_LOG4J2 = """\
status=error
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName={log}
appender.file.filePattern={log}.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=8MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=1
rootLogger.level=info
rootLogger.appenderRef.file.ref=file
"""

_LOG4J1 = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File={log}
log4j.appender.file.MaxFileSize=8MB
log4j.appender.file.MaxBackupIndex=1
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    text: str
    java_option: str
    """Ends with ``=``; the path of the file with ``text`` follows."""


def logging_config(release: tuple[int, ...], log: Path) -> LoggingConfig:
    if release >= (4, 0):
        return LoggingConfig(_LOG4J2.format(log=log), "-Dlog4j2.configurationFile=")
    return LoggingConfig(_LOG4J1.format(log=log), "-Dlog4j.configuration=file:")
