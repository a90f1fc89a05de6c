"""What an operator does to a cluster while clients write: leaders, replicas, log dirs and topics."""

from kafka import TopicPartition

from brimline.torture.faults.table import Stage, Undo, fault
from brimline.torture.world import DOOMED, KEPT, PLAIN

_PREFERRED = 0
"""Kafka's number for an election of the preferred leader."""


@fault("leader-move", "every partition gets another leader", undone_by="nothing", touches="cluster", fewest_brokers=2)
def leaders_moved(stage: Stage) -> Undo:
    """Every partition gets another preferred leader, and then that one."""
    with stage.world.admin() as client:
        replicas = {
            TopicPartition(topic["name"], each["partition_index"]): each["replica_nodes"]
            for topic in client.describe_topics([KEPT, PLAIN, DOOMED])
            for each in topic["partitions"]
        }
        client.alter_partition_reassignments({where: [*nodes[1:], nodes[0]] for where, nodes in replicas.items()})
        client.elect_leaders(_PREFERRED, [KEPT, PLAIN, DOOMED], raise_errors=False)
    return lambda: None


@fault(
    "reassignment",
    "a broker loses its replicas of two partitions",
    undone_by="it gets them back",
    touches="cluster disk",
    fewest_brokers=2,
)
def reassigned(stage: Stage) -> Undo:
    """A broker loses its replicas of two partitions and gets them back, whole."""
    wheres = [TopicPartition(topic, stage.volume) for topic in (KEPT, PLAIN)]
    others = [number for number in stage.world.stations if number != stage.station.number]

    def assign(brokers: list[int]) -> None:
        with stage.world.admin() as client:
            client.alter_partition_reassignments(dict.fromkeys(wheres, brokers))

    assign(others)
    return lambda: assign([*others, stage.station.number])


@fault(
    "log-dir-move",
    "a partition moves to the broker's other log dir",
    undone_by="it moves back",
    touches="cluster disk",
)
def moved_to_the_other_log_dir(stage: Stage) -> Undo:
    where = (PLAIN, stage.volume, stage.station.number)

    def move(number: int) -> None:
        with stage.world.admin() as client:
            client.alter_replica_log_dirs({where: str(stage.station.broker.log_dirs[number])})

    move(1 - stage.volume)
    return lambda: move(stage.volume)


@fault(
    "topic-recreate",
    "a topic is deleted while clients write to it",
    undone_by="it is created again",
    touches="cluster",
)
def deleted_and_created_again(stage: Stage) -> Undo:
    stage.delete_topic(DOOMED)
    return lambda: stage.create_topic(DOOMED)
