/* The mailbox of a cluster: two nodes, one device that moves twice, one slot, two notifications, one lost answer.
 *
 * A notification is a put into the log. The device's node claims it, reads the slot, and hears rings of what was stored
 * since. Every message may be late or lost, and every replica may lag. spin visits all interleavings.
 *
 * A mutation is a mistake that the checks at the end must find:
 *   -DNO_GUARD        a ring is used although something newer of the slot was delivered
 *   -DOLD_RINGS       a ring is used although the read after the claim had to contain its notification
 *   -DUNKNOWN_IS_503  a put whose answer is lost is refused
 */
#define LOG 12
#define MOVES 2
#define NOWHERE 2

byte last;               /* the last sequence of the log */
byte slot[LOG];          /* the notification in the slot after each sequence; 0 for none */
byte slotSequence[LOG];  /* its sequence */

bool answered[3];
bool accepted[3];
bool before[9];          /* [a * 3 + b]: a was answered when b was begun */
byte stored[3];          /* the sequence of a notification */
bool isAnswerLost;

byte home = NOWHERE;     /* the node of the device's connection */
byte attempt;            /* the number of the device's connections */
byte fence[2];
byte bound[2];           /* the greatest sequence that a node has seen */
byte readBound[2];
bool isReading[2];
byte ringNewest[2];      /* the newest ring while the slot is being read */
byte delivered[2];       /* the greatest sequence that was delivered on the connection */
byte ring[6];            /* [notification * 2 + node]: a ring that is on its way */
bool isShown[3];
byte shownLast;
byte acknowledged[3];    /* the sequence of an acknowledgement that is on its way */

inline put(n) {
    last++;
    slot[last] = n;
    slotSequence[last] = last;
    stored[n] = last
}

inline carryOn() {
    last++;
    slot[last] = slot[last - 1];
    slotSequence[last] = slotSequence[last - 1]
}

inline see(node, sequence) {
    if
    :: bound[node] < sequence -> bound[node] = sequence
    :: else
    fi
}

inline deliver(node, n, sequence) {
    if
    :: sequence > delivered[node] -> delivered[node] = sequence
    :: else
    fi;
    isShown[n] = true;
    shownLast = n;
    acknowledged[n] = sequence
}

/* A put is answered: its own node knows it at once, and the other one by a ring. */
inline accept(n) {
    answered[n] = true;
    accepted[n] = true;
    ring[n * 2] = stored[n];
    ring[n * 2 + 1] = stored[n]
}

proctype Provider(byte n; byte other; byte node) {
    atomic { before[other * 3 + n] = answered[other] };
    if
    :: atomic { put(n) };
       atomic { see(node, stored[n]); accept(n) }
    :: atomic { !isAnswerLost -> isAnswerLost = true };
#ifdef UNKNOWN_IS_503
       answered[n] = true;
#endif
       if
       :: true                        /* it never happens */
       :: atomic { put(n) };          /* it happens, perhaps late */
#ifndef UNKNOWN_IS_503
          if
          :: true
          :: atomic { see(node, stored[n]); accept(n) } /* a read behind a barrier has found it */
          fi
#endif
       fi
    fi
}

proctype Node(byte node) {
    byte n;
    byte position;
    byte mine;
    do
    :: atomic { attempt < MOVES -> attempt++; mine = attempt; home = NOWHERE; isReading[0] = false; isReading[1] = false };
       atomic { carryOn(); fence[node] = last; see(node, last) };
       atomic {
           if
           :: attempt == mine -> home = node; isReading[node] = true
           :: else /* the device has given this connection up */
           fi;
           delivered[node] = 0;
           ringNewest[node] = 0;
           readBound[node] = bound[node];
           mine = 0
       }
    :: atomic {
           isReading[node] && home == node ->
           position = readBound[node];
           do
           :: position < last -> position++
           :: break
           od;
           isReading[node] = false;
           if
           :: ringNewest[node] > slotSequence[position] ->
              n = (stored[1] == ringNewest[node] -> 1 : 2);
              deliver(node, n, ringNewest[node])
           :: ringNewest[node] <= slotSequence[position] && slot[position] != 0 ->
              n = slot[position];
              deliver(node, n, slotSequence[position])
           :: else
           fi;
           position = 0;
           n = 0
       }
    :: atomic {
           ring[2 + node] != 0 || ring[4 + node] != 0 ->
           if
           :: ring[2 + node] != 0 -> n = 1
           :: ring[4 + node] != 0 -> n = 2
           fi;
           position = ring[n * 2 + node];
           ring[n * 2 + node] = 0;
           if
           :: true                        /* it is lost */
           :: true -> see(node, position);
              if
#ifdef OLD_RINGS
              :: home != node
#else
              :: home != node || position <= fence[node]
#endif
              :: else ->
                 if
                 :: isReading[node] ->
                    if
                    :: position > ringNewest[node] -> ringNewest[node] = position
                    :: else
                    fi
#ifdef NO_GUARD
                 :: else -> deliver(node, n, position)
#else
                 :: !isReading[node] && position > delivered[node] -> deliver(node, n, position)
                 :: else
#endif
                 fi
              fi
           fi;
           position = 0;
           n = 0
       }
    :: atomic {
           home == node && (acknowledged[1] != 0 || acknowledged[2] != 0) ->
           if
           :: acknowledged[1] != 0 -> n = 1
           :: acknowledged[2] != 0 -> n = 2
           fi;
           if
           :: slotSequence[last] == acknowledged[n] && slot[last] != 0 ->
              last++;
              slot[last] = 0;
              slotSequence[last] = last
           :: else
           fi;
           acknowledged[n] = 0;
           n = 0
       }
    od
}

/* At any moment nothing may be lost, and the device may not end on the older one. */
inline judge(n, other) {
    assert(!accepted[n] || isShown[n] || slot[last] == n || (stored[other] > stored[n] && !before[other * 3 + n]));
    assert(!(shownLast == other && isShown[n] && before[other * 3 + n]))
}

init {
    byte first;
    byte second;
    select(first : 0 .. 1);
    select(second : 0 .. 1);
    atomic {
        run Provider(1, 2, first);
        run Provider(2, 1, second);
        run Node(0);
        run Node(1)
    };
    timeout -> atomic { judge(1, 2); judge(2, 1) }
}
