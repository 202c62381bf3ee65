------------------------------- MODULE Guided -------------------------------
(* Only the behaviours of one schedule: pairs of an action and a server    *)
(* that takes it.  A schedule too deep for breadth-first search shows in a *)
(* moment what goes wrong without a rule of the protocol.                  *)
EXTENDS Quorate

CONSTANT Schedules  \* a set of schedules; each behaviour follows one

VARIABLES schedule, at

Does(action, i) ==
    CASE action = "Sync" -> Sync(i)
      [] action = "Crash" -> Crash(i)
      [] action = "LearnEpoch" -> LearnEpoch(i)
      [] action = "LearnLeader" -> LearnLeader(i)
      [] action = "Timeout" -> Timeout(i)
      [] action = "GrantVote" -> GrantVote(i)
      [] action = "BecomeCandidate" -> BecomeCandidate(i)
      [] action = "BecomeLeader" -> BecomeLeader(i)
      [] action = "Propose" -> Propose(i)
      [] action = "ChangeVoters" -> ChangeVoters(i)
      [] action = "Commit" -> Commit(i)
      [] action = "Fetch" -> Fetch(i)
      [] action = "FetchRecords" -> FetchRecords(i)
      [] action = "FollowHighWatermark" -> FollowHighWatermark(i)
      [] action = "Truncate" -> Truncate(i)

GuidedInit == Init /\ schedule \in Schedules /\ at = 1
GuidedNext ==
    /\ at <= Len(schedule)
    /\ Does(schedule[at][1], schedule[at][2])
    /\ at' = at + 1
    /\ UNCHANGED schedule
GuidedSpec == GuidedInit /\ [][GuidedNext]_<<vars, schedule, at>>
=============================================================================
