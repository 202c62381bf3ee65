---------------------------- MODULE QuorateTrace ----------------------------
(* Could the specification have done what the real code did?  `Lines', in  *)
(* the module Run, is a run as quorate.sim.render.tla records it: after each step *)
(* of a server, what that server holds in memory, and how many writes are  *)
(* on their way to its disk.  Between two lines only the server of the next line moves, in *)
(* as many steps as it takes; messages are not in the trace, they come     *)
(* from the specification.  The trace is accepted when some behaviour      *)
(* passes all lines.                                                       *)
EXTENDS Quorate, TLC, Run

VARIABLE line  \* the next line to pass

Next1 == Lines[line]

(* What the line says of the server is what the specification has.         *)
Matches ==
    LET i == Next1.server
        now == Now(i)
    IN  /\ role[i] = Next1.role
        /\ now.epoch = Next1.epoch
        /\ now.leader = Next1.leader
        /\ now.voted = Next1.voted
        /\ now.log = Next1.log
        /\ hw[i] = Next1.hw
        /\ fetched[i] = Next1.fetched
        /\ voters[i] = Next1.voters
        /\ Len(disk[i]) = 1 + Next1.pending
        /\ DurableEnd(i) = Next1.durable

(* No step leads past what the line says.                                  *)
Within ==
    LET i == Next1.server
        now == disk'[i][Len(disk'[i])]
    IN  /\ now.epoch <= Next1.epoch
        /\ Len(now.log) <= Max(Len(Next1.log), Len(Now(i).log))
        /\ hw'[i] <= Next1.hw
        /\ Len(disk'[i]) <= 1 + Max(Next1.pending, Len(disk[i]) - 1) + 4

TraceInit == Init /\ line = 1

(* What can be said is said: nobody has to listen.                         *)
AllSaid ==
    LET i == Next1.server
    IN  MayFetch(i) => led[Now(i).epoch].acked[i] = Len(Now(i).log)

Pass ==
    /\ Matches
    /\ AllSaid
    /\ line' = line + 1
    /\ UNCHANGED vars

Hidden ==
    /\ Move(Next1.server) \/ (Next1.start /\ Crash(Next1.server))
    /\ Within
    /\ line' = line

TraceNext == line <= Len(Lines) /\ (Pass \/ Hidden)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, line>>

(* Say how far any behaviour came: a refused trace stops at such a line.   *)
ASSUME TLCSet(1, 0)
Reach == line <= TLCGet(1) \/ (TLCSet(1, line) /\ PrintT(<<"reached line", line>>))

(* TLC reports this as violated when a behaviour has passed all lines: the *)
(* trace is accepted.                                                      *)
Unfinished == line <= Len(Lines)
=============================================================================
