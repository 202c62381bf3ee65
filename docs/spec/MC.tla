-------------------------------- MODULE MC --------------------------------
(* What TLC needs to check Quorate.tla within bounds: see the .cfg files. *)
EXTENDS Quorate, TLC

CONSTANT MaxPending  \* at most so many writes of a server are on their way to its disk

Symmetry == Permutations(InitVoters) \cup Permutations(Server \ InitVoters)
Bounded == \A i \in Server : Len(disk[i]) <= 1 + MaxPending

(* Fewer interleavings, where the log matters: elections take few steps.  *)
(* An election state is on the disk before anything else happens; a       *)
(* prospective replica stands at once, if no higher epoch has begun;      *)
(* a replica crashes, and a leader resigns, only with writes on their     *)
(* way; a follower takes the newest high watermark or none.               *)
Unsaved == {i \in Server : ~ElectionIsDurable(i)}
Running == {i \in Server : role[i] = "prospective"}
FastElections ==
    /\ Unsaved # {} => \E i \in Unsaved : Len(disk'[i]) < Len(disk[i])
    /\ Unsaved = {} /\ Running # {} => \E i \in Running : role'[i] = "candidate"
    /\ \A i \in Server :
         /\ role[i] = "prospective" /\ role'[i] = "candidate" =>
              \A j \in Server : Now(j).epoch <= Now(i).epoch
         /\ Settled(i) => hw'[i] >= hw[i]
         /\ Settled(i) /\ role[i] = "leader" => role'[i] # "resigned"
         /\ role[i] = "follower" /\ hw'[i] > hw[i] => hw'[i] = led[Now(i).epoch].hw

(* As FastElections; leaders append only LeaderChange and voter sets, and *)
(* a server that is in no voter set in force does nothing.                *)
ChangesOnly ==
    /\ FastElections
    /\ \A i \in Server : role[i] = "leader" /\ Len(disk'[i]) > Len(disk[i]) =>
         LET log == disk'[i][Len(disk'[i])].log IN log[Len(log)].voters # {}
    /\ \A i \in Server : (\A j \in Server : i \notin voters[j]) => disk'[i] = disk[i]

(* Only what pre-votes against a live leader need: a write is on the disk  *)
(* before anything else happens, no leader crashes or resigns, nothing is  *)
(* committed, one replica stands in epoch 0, and no candidate gives up.    *)
AgainstALeader ==
    /\ (\E i \in Server : ~Settled(i)) => \E i \in Server : Len(disk'[i]) < Len(disk[i])
    /\ hw' = hw
    /\ \A i \in Server :
         /\ role[i] = "leader" => role'[i] # "resigned"
         /\ role[i] = "candidate" => role'[i] # "prospective"
         /\ role[i] = "unattached" /\ role'[i] = "prospective" /\ Now(i).epoch = 0 =>
              \A j \in Server : role[j] = "unattached" /\ Now(j).epoch = 0
=============================================================================
