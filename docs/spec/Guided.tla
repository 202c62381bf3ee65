------------------------------- MODULE Guided -------------------------------
(* Only the behaviours of one story: pairs of an action and a server that  *)
(* takes it.  A story too deep for breadth-first search shows in a moment  *)
(* what goes wrong when a rule of the protocol is taken away.              *)
EXTENDS Quorate

CONSTANT Stories  \* a set of stories; each behaviour follows one

VARIABLES story, at

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

GuidedInit == Init /\ story \in Stories /\ at = 1
GuidedNext ==
    /\ at <= Len(story)
    /\ Does(story[at][1], story[at][2])
    /\ at' = at + 1
    /\ UNCHANGED story
GuidedSpec == GuidedInit /\ [][GuidedNext]_<<vars, story, at>>
=============================================================================
