------------------------------ MODULE Quorate ------------------------------
(***************************************************************************)
(* The consensus protocol of Quorate (KRaft: KIP-595, KIP-996, KIP-853) as *)
(* src/quorate/raft implements it.  README.md maps each action to the code *)
(* and each invariant to the check of the simulator with the same name.    *)
(*                                                                         *)
(* Three ideas keep the specification small:                               *)
(*                                                                         *)
(*  1. A disk is the list of the states that it will go through.  The head *)
(*     is what a crash leaves, the last one is what memory holds.  A write *)
(*     appends a state, `Sync' drops the head, `Crash' keeps only the head.*)
(*                                                                         *)
(*  2. A message that was sent may be received at any later time, any      *)
(*     number of times, or never.  So messages are sets that only grow:    *)
(*     this is delay, loss, duplication and reordering in one.  A replica  *)
(*     sends its state as soon as it is durable: receipt is optional.      *)
(*                                                                         *)
(*  3. In an epoch the leader's log only grows.  All answers to Fetch of   *)
(*     an epoch are therefore prefixes of one log, `led[epoch].log'.       *)
(*                                                                         *)
(* A server is a replica key: node id with directory id.  A node whose     *)
(* disk was replaced is another server, and the old one never returns.  An *)
(* entry of a log is a batch, the unit of append and truncation.  An       *)
(* offset is a number of batches; the high watermark 0 also means          *)
(* "unknown".  There are no clocks: a timer may expire at any time.  There *)
(* are no snapshots: no log is ever cleaned.                               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Server,      \* all replica keys
    InitVoters,  \* the voter set of the bootstrap snapshot, on the disks of these servers
    None,        \* no server
    MaxEpoch,    \* bound: no epoch above this one
    MaxLog,      \* bound: no log longer than this
    PreVotes     \* TRUE: KIP-996.  FALSE: all peers are too old for it, and it is skipped

VARIABLES
    disk,        \* per server: the states of its disk, see 1 above
    role,        \* per server: as in docs/states.md
    hw,          \* per server: high watermark, in memory only
    fetched,     \* per server: has a Fetch succeeded, so that its leader is known to live?
    voters,      \* per server: the voter set in force
    ballot,      \* per server: who granted its pre-vote, while it is prospective
    asked,       \* requests for votes that were sent
    votes,       \* votes that were granted and said
    said,        \* <<epoch, leader or None>>: what messages said of epochs and leaders
    led          \* per epoch: what its leader did, see 3 above

vars == <<disk, role, hw, fetched, voters, ballot, asked, votes, said, led>>

Epochs == 1..MaxEpoch
Roles == {"unattached", "prospective", "candidate", "follower", "leader", "resigned"}

-----------------------------------------------------------------------------
(* Logs and voter sets.  An entry has an epoch and, if it is a Voters      *)
(* record, a voter set; {} where it is not.                                *)

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b

EpochAt(log, n) == IF n = 0 THEN 0 ELSE log[n].epoch
LastEpoch(log) == EpochAt(log, Len(log))
Prefix(log, n) == SubSeq(log, 1, n)
IsPrefix(a, b) == Len(a) <= Len(b) /\ a = Prefix(b, Len(a))

(* The length of what two logs have in common.                             *)
Common(a, b) ==
    LET m == Min(Len(a), Len(b))
        wrong == {n \in 1..m : a[n] # b[n]}
    IN  IF wrong = {} THEN m ELSE (CHOOSE n \in wrong : \A k \in wrong : n <= k) - 1

(* The end of the greatest epoch of the log that is not above `epoch'.     *)
EndOf(log, epoch) ==
    LET within == {n \in 1..Len(log) : log[n].epoch <= epoch}
    IN  IF within = {} THEN 0 ELSE CHOOSE n \in within : \A k \in within : k <= n

(* Where the log has Voters records, and the n-th newest of them (0: none).*)
VotersAt(log) == {n \in 1..Len(log) : log[n].voters # {}}
Newest(places) == IF places = {} THEN 0 ELSE CHOOSE n \in places : \A k \in places : k <= n

Bootstrap(i) == IF i \in InitVoters THEN InitVoters ELSE {}
VotersOf(i, log) ==
    LET n == Newest(VotersAt(log)) IN IF n = 0 THEN Bootstrap(i) ELSE log[n].voters

(* Where others began to vote, and who voted before the newest of these    *)
(* changes: records may follow that only update a voter.                   *)
ChangesAt(i, log) ==
    {n \in VotersAt(log) : log[n].voters # VotersOf(i, Prefix(log, n - 1))}
VotersBefore(i, log) ==
    LET n == Newest(ChangesAt(i, log)) IN IF n = 0 THEN {} ELSE VotersOf(i, Prefix(log, n - 1))

IsMajority(some, all) == 2 * Cardinality(some \cap all) > Cardinality(all)
Difference(a, b) == Cardinality((a \ b) \cup (b \ a))

-----------------------------------------------------------------------------
(* Disks.                                                                  *)

Now(i) == disk[i][Len(disk[i])]
Safe(i) == disk[i][1]
Settled(i) == Len(disk[i]) = 1
ElectionIsDurable(i) ==
    /\ Safe(i).epoch = Now(i).epoch
    /\ Safe(i).leader = Now(i).leader
    /\ Safe(i).voted = Now(i).voted

(* How much of the present log every coming state of the disk has.         *)
DurableEnd(i) ==
    LET ends == {Common(disk[i][k].log, Now(i).log) : k \in 1..Len(disk[i])}
    IN  CHOOSE n \in ends : \A k \in ends : n <= k

Election(i, epoch, leader, voted) ==
    [epoch |-> epoch, leader |-> leader, voted |-> voted, log |-> Now(i).log]
WithLog(i, log) == [Now(i) EXCEPT !.log = log]

Write(i, states) == disk' = [disk EXCEPT ![i] = @ \o states]
Save(i, epoch, leader, voted) ==
    LET state == Election(i, epoch, leader, voted)
    IN  IF state = Now(i) THEN UNCHANGED disk ELSE Write(i, <<state>>)

-----------------------------------------------------------------------------
Init ==
    /\ disk = [i \in Server |-> <<[epoch |-> 0, leader |-> None, voted |-> None, log |-> <<>>]>>]
    /\ role = [i \in Server |-> "unattached"]
    /\ hw = [i \in Server |-> 0]
    /\ fetched = [i \in Server |-> FALSE]
    /\ voters = [i \in Server |-> Bootstrap(i)]
    /\ ballot = [i \in Server |-> {}]
    /\ asked = {}
    /\ votes = {}
    /\ said = {}
    /\ led = [e \in Epochs |->
                [by |-> {}, log |-> <<>>, hw |-> 0, acked |-> [i \in Server |-> 0]]]

(* What a candidate asks.  Its vote for itself is durable then, and with   *)
(* it, for writes are done in order, the log that it claims.               *)
Request(i, state) ==
    [epoch |-> state.epoch, by |-> i, to |-> VotersOf(i, state.log),
     last |-> LastEpoch(state.log), end |-> Len(state.log)]

(* What is on the disk is said: epoch and leader, a vote, and with a vote  *)
(* for oneself the request for the votes of others.                        *)
Say(i, state) ==
    /\ said' = said \cup {<<state.epoch, state.leader>>}
    /\ votes' = IF state.voted = None THEN votes
                ELSE votes \cup {[epoch |-> state.epoch, by |-> i, to |-> state.voted]}
    /\ asked' = IF state.voted = i /\ state.leader = None THEN asked \cup {Request(i, state)}
                ELSE asked

(* A write reaches the disk.                                               *)
Sync(i) ==
    /\ Len(disk[i]) > 1
    /\ disk' = [disk EXCEPT ![i] = Tail(@)]
    /\ Say(i, disk[i][2])
    /\ UNCHANGED <<role, hw, fetched, voters, ballot, led>>

(* A voter may start an election; and so may a voter of the set before the *)
(* newest change, while it does not know that change to be committed.      *)
IsElectable(i) ==
    \/ i \in voters[i]
    \/ /\ i \in VotersBefore(i, Now(i).log)
       /\ Newest(ChangesAt(i, Now(i).log)) > hw[i]

(* Stop dead and start again from the disk.                                *)
Crash(i) ==
    LET s == Safe(i)
        set == VotersOf(i, s.log)
        alone == set = {i}
    IN  /\ disk' = [disk EXCEPT ![i] = <<s>>]
        /\ voters' = [voters EXCEPT ![i] = set]
        /\ hw' = [hw EXCEPT ![i] = 0]
        /\ fetched' = [fetched EXCEPT ![i] = FALSE]
        /\ ballot' = [ballot EXCEPT ![i] = IF PreVotes /\ alone THEN {i} ELSE {}]
        /\ role' = [role EXCEPT ![i] =
             IF s.leader = i THEN IF alone THEN "prospective" ELSE "resigned"
             ELSE IF /\ s.leader = None  \* a losing candidate may be the only voter since
                     /\ s.voted = i
                     /\ i \in set \/ i \in VotersBefore(i, s.log)
                  THEN "candidate"
             ELSE IF s.leader \in set THEN "follower"
             ELSE IF alone THEN "prospective" ELSE "unattached"]
        /\ UNCHANGED <<asked, votes, said, led>>

-----------------------------------------------------------------------------
(* Epochs and leaders: what every message reports.                         *)

(* A message names a higher epoch, perhaps with its leader.                *)
LearnEpoch(i) ==
    \E s \in said :
        LET epoch == s[1]
            leader == IF s[2] = i THEN None ELSE s[2]
        IN  /\ epoch > Now(i).epoch
            /\ Save(i, epoch, leader, None)
            /\ role' = [role EXCEPT ![i] = IF leader = None THEN "unattached" ELSE "follower"]
            /\ fetched' = [fetched EXCEPT ![i] = FALSE]
            /\ ballot' = [ballot EXCEPT ![i] = {}]
            /\ UNCHANGED <<hw, voters, asked, votes, said, led>>

(* A message names the leader of the present epoch.                        *)
LearnLeader(i) ==
    \E s \in said :
        /\ s[1] = Now(i).epoch
        /\ s[2] \notin {None, i}
        /\ \/ role[i] \in {"unattached", "candidate"} /\ Now(i).leader \in {None, s[2]}
           \/ role[i] = "prospective" /\ Now(i).leader = None
        /\ Save(i, Now(i).epoch, s[2], Now(i).voted)
        /\ role' = [role EXCEPT ![i] = "follower"]
        /\ fetched' = [fetched EXCEPT ![i] = FALSE]
        /\ ballot' = [ballot EXCEPT ![i] = {}]
        /\ UNCHANGED <<hw, voters, asked, votes, said, led>>

-----------------------------------------------------------------------------
(* Elections.                                                              *)

(* No message of a leader for too long, or nobody won the election: ask    *)
(* first whether an election could be won (KIP-996).                       *)
Timeout(i) ==
    /\ role[i] \in {"unattached", "follower", "candidate"}
    /\ IsElectable(i)
    /\ role' = [role EXCEPT ![i] = "prospective"]
    /\ fetched' = [fetched EXCEPT ![i] = FALSE]
    /\ ballot' = [ballot EXCEPT ![i] = IF PreVotes THEN voters[i] \cap {i} ELSE {}]
    /\ UNCHANGED <<disk, hw, voters, asked, votes, said, led>>

(* The pre-vote was lost or took too long: back to the leader, if any.     *)
GiveUp(i) ==
    /\ role[i] = "prospective"
    /\ role' = [role EXCEPT ![i] =
                  IF Now(i).leader \in {None, i} THEN "unattached" ELSE "follower"]
    /\ ballot' = [ballot EXCEPT ![i] = {}]
    /\ UNCHANGED <<disk, hw, fetched, voters, asked, votes, said, led>>

(* The leader's connection broke, or it ended its epoch.                   *)
SuspectLeader(i) ==
    /\ fetched[i]
    /\ fetched' = [fetched EXCEPT ![i] = FALSE]
    /\ UNCHANGED <<disk, role, hw, voters, ballot, asked, votes, said, led>>

(* Is the log that ends so, with this last epoch, at least as good?        *)
UpToDate(last, end, log) ==
    \/ last > LastEpoch(log)
    \/ last = LastEpoch(log) /\ end >= Len(log)

(* A pre-vote promises nothing, so question and answer are one step; an    *)
(* answer that comes after the round is over is ignored by the code.       *)
GrantPreVote(i) ==
    \E c \in Server \ {i} :
        /\ PreVotes
        /\ role[c] = "prospective"
        /\ Settled(c)
        /\ i \in voters[c]
        /\ Now(c).epoch = Now(i).epoch
        /\ role[i] # "leader"
        /\ ~fetched[i]
        /\ UpToDate(LastEpoch(Now(c).log), Len(Now(c).log), Now(i).log)
        /\ ElectionIsDurable(i)
        /\ ballot' = [ballot EXCEPT ![c] = @ \cup {i}]
        /\ UNCHANGED <<disk, role, hw, fetched, voters, asked, votes, said, led>>

BecomeCandidate(i) ==
    /\ role[i] = "prospective"
    /\ Now(i).epoch < MaxEpoch
    /\ PreVotes => IsMajority(ballot[i], voters[i])
    /\ Save(i, Now(i).epoch + 1, None, i)
    /\ role' = [role EXCEPT ![i] = "candidate"]
    /\ ballot' = [ballot EXCEPT ![i] = {}]
    /\ UNCHANGED <<hw, fetched, voters, asked, votes, said, led>>

(* The vote is stored; `Sync' says it.                                     *)
GrantVote(i) ==
    \E m \in asked :
        /\ m.epoch = Now(i).epoch
        /\ i \in m.to
        /\ role[i] \in {"unattached", "prospective"}
        /\ Now(i).voted = None
        /\ Now(i).leader = None
        /\ UpToDate(m.last, m.end, Now(i).log)
        /\ Write(i, <<[Now(i) EXCEPT !.voted = m.by]>>)
        /\ ballot' = [ballot EXCEPT ![i] = @ \cap {i}]
        /\ UNCHANGED <<role, hw, fetched, voters, asked, votes, said, led>>

VotesFor(i) == {v.by : v \in {w \in votes : w.epoch = Now(i).epoch /\ w.to = i}}

(* Save the election, in which the leader's own vote is not kept, for to   *)
(* lead says more.  Then append the LeaderChange record; with the voter    *)
(* set of the bootstrap snapshot, if no Voters record is in the log yet;   *)
(* with the set in force, where it has other endpoints of this server.     *)
BecomeLeader(i) ==
    LET epoch == Now(i).epoch
        elected == Election(i, epoch, i, None)
        Begun(set) == [elected EXCEPT !.log = Append(@, [epoch |-> epoch, voters |-> set])]
    IN  \E begun \in {Begun(voters[i])}
                    \cup (IF VotersAt(Now(i).log) = {} THEN {} ELSE {Begun({})}) :
        /\ role[i] = "candidate"
        /\ Len(Now(i).log) < MaxLog
        /\ IsMajority(VotesFor(i), voters[i])
        /\ Write(i, <<elected, begun>>)
        /\ role' = [role EXCEPT ![i] = "leader"]
        /\ led' = [led EXCEPT ![epoch].by = @ \cup {i}, ![epoch].log = begun.log, ![epoch].hw = 0]
        /\ UNCHANGED <<hw, fetched, voters, ballot, asked, votes, said>>

(* No majority fetches, shutdown, resignation, or removed.                 *)
Resign(i) ==
    /\ role[i] = "leader"
    /\ role' = [role EXCEPT ![i] = "resigned"]
    /\ UNCHANGED <<disk, hw, fetched, voters, ballot, asked, votes, said, led>>

(* A resigned leader whom nobody followed.                                 *)
LeaveEpoch(i) ==
    /\ role[i] = "resigned"
    /\ Now(i).epoch < MaxEpoch
    /\ Save(i, Now(i).epoch + 1, None, None)
    /\ role' = [role EXCEPT ![i] = "unattached"]
    /\ UNCHANGED <<hw, fetched, voters, ballot, asked, votes, said, led>>

-----------------------------------------------------------------------------
(* The leader.                                                             *)

AppendAsLeader(i, entry) ==
    LET log == Append(Now(i).log, entry)
    IN  /\ role[i] = "leader"
        /\ Len(log) <= MaxLog
        /\ Write(i, <<WithLog(i, log)>>)
        /\ led' = [led EXCEPT ![Now(i).epoch].log = log]

Propose(i) ==
    /\ AppendAsLeader(i, [epoch |-> Now(i).epoch, voters |-> {}])
    /\ UNCHANGED <<role, hw, fetched, voters, ballot, asked, votes, said>>

(* Add or remove one voter, or update one (KIP-853): its endpoints or its  *)
(* range of kraft.version, and then the set is the same, and yet a change. *)
(* The new set rules at once.                                              *)
ChangeVoters(i) ==
    \E set \in SUBSET Server \ {{}} :
        /\ AppendAsLeader(i, [epoch |-> Now(i).epoch, voters |-> set])
        /\ Difference(set, voters[i]) <= 1
        /\ led[Now(i).epoch].hw > 0
        /\ Newest(VotersAt(Now(i).log)) <= hw[i]
        /\ voters' = [voters EXCEPT ![i] = set]
        /\ UNCHANGED <<role, hw, fetched, ballot, asked, votes, said>>

(* What a voter holds for sure, as the leader knows it.                    *)
End(i, v) == IF v = i THEN DurableEnd(i) ELSE led[Now(i).epoch].acked[v]

(* A majority of the voters in force holds the log up to n, and n covers a *)
(* record of the leader's own epoch.                                       *)
Commit(i) ==
    \E n \in 1..Len(Now(i).log) :
        /\ role[i] = "leader"
        /\ n > led[Now(i).epoch].hw
        /\ EpochAt(Now(i).log, n) = Now(i).epoch
        /\ IsMajority({v \in voters[i] : End(i, v) >= n}, voters[i])
        /\ hw' = [hw EXCEPT ![i] = n]
        /\ led' = [led EXCEPT ![Now(i).epoch].hw = n]
        /\ UNCHANGED <<disk, role, fetched, voters, ballot, asked, votes, said>>

-----------------------------------------------------------------------------
(* The follower.  A Fetch names the end of the log and its last epoch.     *)

Follows(i) == role[i] = "follower" /\ Now(i).epoch >= 1
LeadersLog(i) == led[Now(i).epoch].log

(* Is the end of this log a place in the leader's log?                     *)
Fits(i) ==
    LET log == Now(i).log
        end == EndOf(LeadersLog(i), LastEpoch(log))
    IN  Len(log) = 0 \/ (EpochAt(LeadersLog(i), end) = LastEpoch(log) /\ end >= Len(log))

(* A Fetch is sent when the whole log is durable, and acknowledges it.  An *)
(* unattached replica sends it too, to anybody: that may be the leader.    *)
MayFetch(i) ==
    /\ role[i] \in {"unattached", "follower"}
    /\ Now(i).epoch >= 1
    /\ Settled(i)
    /\ Fits(i)

Fetch(i) ==
    /\ MayFetch(i)
    /\ led' = [led EXCEPT ![Now(i).epoch].acked[i] = Len(Now(i).log)]
    /\ UNCHANGED <<disk, role, hw, fetched, voters, ballot, asked, votes, said>>

(* Any successful answer to a Fetch: this replica knows that its leader    *)
(* is alive.                                                               *)
FetchSucceeds(i) ==
    /\ PreVotes
    /\ Follows(i)
    /\ fetched' = [fetched EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<disk, role, hw, voters, ballot, asked, votes, said, led>>

(* The answer to that Fetch brings records: each batch is a write.  (The   *)
(* answer to an unattached replica makes it a follower first.)             *)
Extend(i) ==
    \E n \in (Len(Now(i).log) + 1)..Len(LeadersLog(i)) :
        LET from == Len(Now(i).log)
            log == Now(i).log \o SubSeq(LeadersLog(i), from + 1, n)
        IN  /\ Write(i, [k \in 1..(n - from) |-> WithLog(i, Prefix(log, from + k))])
            /\ voters' = [voters EXCEPT ![i] = VotersOf(i, log)]

FetchRecords(i) ==
    /\ Follows(i)
    /\ led[Now(i).epoch].acked[i] = Len(Now(i).log)
    /\ Extend(i)
    /\ UNCHANGED <<role, hw, fetched, ballot, asked, votes, said, led>>

(* The answer brings the leader's high watermark.                          *)
FollowHighWatermark(i) ==
    /\ Follows(i)
    /\ Fits(i)
    /\ \E n \in 1..Min(Len(Now(i).log), led[Now(i).epoch].hw) :
           /\ n > hw[i]
           /\ hw' = [hw EXCEPT ![i] = n]
    /\ UNCHANGED <<disk, role, fetched, voters, ballot, asked, votes, said, led>>

(* The answer says where the logs part: cut there.  What the cut records   *)
(* had brought into force is taken back.                                   *)
Truncate(i) ==
    LET log == Now(i).log
        theirs == EndOf(LeadersLog(i), LastEpoch(log))
        epoch == EpochAt(LeadersLog(i), theirs)
        mine == EndOf(log, epoch)
        cut == IF EpochAt(log, mine) = epoch THEN Min(mine, theirs) ELSE mine
    IN  /\ Follows(i)
        /\ \A k \in 1..Len(disk[i]) : disk[i][k].log = log
        /\ ~Fits(i)
        /\ Write(i, <<WithLog(i, Prefix(log, cut))>>)
        /\ voters' = [voters EXCEPT ![i] = VotersOf(i, Prefix(log, cut))]
        /\ UNCHANGED <<role, hw, fetched, ballot, asked, votes, said, led>>

-----------------------------------------------------------------------------
Move(i) ==
    \/ Sync(i)
    \/ LearnEpoch(i) \/ LearnLeader(i)
    \/ Timeout(i) \/ GiveUp(i) \/ SuspectLeader(i) \/ GrantPreVote(i) \/ GrantVote(i)
    \/ BecomeCandidate(i) \/ BecomeLeader(i) \/ Resign(i) \/ LeaveEpoch(i)
    \/ Propose(i) \/ ChangeVoters(i) \/ Commit(i)
    \/ Fetch(i) \/ FetchSucceeds(i) \/ FetchRecords(i) \/ FollowHighWatermark(i) \/ Truncate(i)

Next == \E i \in Server : Move(i) \/ Crash(i)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What must always hold.                                                  *)

Entry == [epoch : Epochs, voters : SUBSET Server]

TypeOK ==
    /\ \A i \in Server : \A k \in 1..Len(disk[i]) :
         /\ disk[i][k].epoch \in 0..MaxEpoch
         /\ disk[i][k].leader \in Server \cup {None}
         /\ disk[i][k].voted \in Server \cup {None}
         /\ \A n \in 1..Len(disk[i][k].log) : disk[i][k].log[n] \in Entry
         /\ LastEpoch(disk[i][k].log) <= disk[i][k].epoch
    /\ role \in [Server -> Roles]
    /\ hw \in [Server -> 0..MaxLog]
    /\ fetched \in [Server -> BOOLEAN]
    /\ voters \in [Server -> SUBSET Server]
    /\ ballot \in [Server -> SUBSET Server]

(* At most one leader in an epoch, ever.                                   *)
ElectionSafety == \A e \in Epochs : Cardinality(led[e].by) <= 1

(* Two logs that have an entry of the same epoch at the same offset are    *)
(* the same up to there.                                                   *)
LogMatching ==
    \A i, j \in Server :
        LET a == Now(i).log
            b == Now(j).log
        IN  \A n \in 1..Min(Len(a), Len(b)) :
                a[n].epoch = b[n].epoch => Prefix(a, n) = Prefix(b, n)

Committed(e) == Prefix(led[e].log, led[e].hw)

(* What was committed in an epoch is in the logs of all later leaders.     *)
LeaderCompleteness ==
    \A i \in Server : role[i] = "leader" =>
        \A e \in 1..(Now(i).epoch - 1) : IsPrefix(Committed(e), Now(i).log)

(* All agree on what is committed, and nobody believes more.               *)
CommittedPrefix ==
    /\ \A e, f \in Epochs :
         IsPrefix(Committed(e), Committed(f)) \/ IsPrefix(Committed(f), Committed(e))
    /\ \A i \in Server : hw[i] > 0 =>
         /\ hw[i] <= Len(Now(i).log)
         /\ \E e \in Epochs : IsPrefix(Prefix(Now(i).log, hw[i]), Committed(e))

(* What a replica has said of its epoch, its leadership, its vote and its  *)
(* log is on its disk; a higher epoch there puts an end to the promise.    *)
DurableBeforeSent ==
    /\ \A v \in votes :
         \/ Safe(v.by).epoch > v.epoch
         \/ Safe(v.by).epoch = v.epoch /\ Safe(v.by).voted = v.to
         \/ Safe(v.by).epoch = v.epoch /\ Safe(v.by).leader = v.by /\ v.to = v.by
    /\ \A m \in asked : [epoch |-> m.epoch, by |-> m.by, to |-> m.by] \in votes
    /\ \A s \in said : s[2] # None =>
         \/ Safe(s[2]).epoch > s[1]
         \/ Safe(s[2]).epoch = s[1] /\ Safe(s[2]).leader = s[2]
    /\ \A e \in Epochs, i \in Server :
         \/ led[e].acked[i] = 0
         \/ Safe(i).epoch > e
         \/ Safe(i).epoch = e /\ IsPrefix(Prefix(led[e].log, led[e].acked[i]), Safe(i).log)

(* The voter set in force is that of the newest Voters record in the log.  *)
VotersInForce == \A i \in Server : voters[i] = VotersOf(i, Now(i).log)

(* At most one voter change in a log is not committed.  A leader's first   *)
(* batch changes nothing: it says the set anew that was there before it.   *)
OneVoterChange ==
    \A i \in Server :
        LET log == Now(i).log
            Anew(n) == /\ EpochAt(log, n - 1) < EpochAt(log, n)
                       /\ log[n].voters = VotersOf(i, Prefix(log, n - 1))
        IN  Cardinality({n \in VotersAt(log) :
                /\ ~Anew(n)
                /\ \A e \in Epochs : ~IsPrefix(Prefix(log, n), Committed(e))}) <= 1

(* Two voter sets that follow each other differ in one voter at most, so   *)
(* that every majority of the one shares a voter with every majority of    *)
(* the other.                                                              *)
VoterSetsOverlap ==
    \A i \in Server :
        LET log == Now(i).log
        IN  \A n \in VotersAt(log) :
                LET before == VotersOf(i, Prefix(log, n - 1))
                IN  before = {} \/ Difference(log[n].voters, before) <= 1

(* No replica becomes a candidate before a majority has granted its        *)
(* pre-vote (KIP-996).                                                     *)
PreVoteFirst ==
    [][PreVotes => \A i \in Server : role[i] # "candidate" /\ role'[i] = "candidate" =>
         \/ IsMajority(ballot[i], voters[i])
         \/ disk'[i] = <<Safe(i)>>]_vars

(* A leader, or a replica with a live leader, grants no pre-vote           *)
(* (KIP-996): a removed or disconnected voter starts no election.          *)
NoDisruption ==
    [][\A c \in Server : \A i \in ballot'[c] \ (ballot[c] \cup {c}) :
         role[i] # "leader" /\ ~fetched[i]]_vars

(* The high watermark of a replica falls only when it starts again, that   *)
(* of an epoch never.                                                      *)
HighWatermarkMonotonic ==
    [][/\ \A i \in Server : hw'[i] >= hw[i] \/ (hw'[i] = 0 /\ disk'[i] = <<Safe(i)>>)
       /\ \A e \in Epochs : led'[e].hw >= led[e].hw]_vars

(* When a leader commits, a majority of the voters in force holds the      *)
(* entries on its disks.                                                   *)
DurableMajority ==
    [][\A i \in Server : role[i] = "leader" /\ hw'[i] > hw[i] =>
         IsMajority({v \in voters[i] : IsPrefix(Prefix(Now(i).log, hw'[i]), Safe(v).log)},
                    voters[i])]_vars
=============================================================================
