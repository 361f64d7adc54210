/* The fences of a cluster: a device gives its first connection up and makes a second one, at another node.
 *
 * Each node may stand still between any two steps, and hear nothing of the other. A connection claims the device, stamps the
 * registration with its fence, and is open; the first one then asks to end the registration. spin visits all interleavings.
 *
 * A mutation is a mistake that the check at the end must find:
 *   -DNO_CLIENT_CHECK  a CONNECT claims the device although its client has gone
 *   -DNO_CONDITION     a claim does not name the one that it replaces
 *   -DNO_STAMP         a connection that begins leaves the registration as it is
 *   -DNO_FENCE         a change does not look at the fence of the record
 */
byte sequence;           /* of the log */
byte claim;              /* the sequence of the newest claim */
byte holder;             /* its connection */
byte fence;              /* of the registration's record */
byte version;            /* the sequence of that record */
bool isLive = true;

bool isGone[3];
bool isOpen[3];
bool isTold[3];          /* whether the registration was live when the connection began */

proctype Connection(byte me) {
    byte expected = claim;
    byte mine;
    byte known;
    do
    ::
#ifndef NO_CLIENT_CHECK
       if
       :: isGone[me] -> goto end
       :: else
       fi;
#endif
       atomic {
           if
#ifdef NO_CONDITION
           :: true ->
#else
           :: claim == expected ->
#endif
              sequence++;
              claim = sequence;
              holder = me;
              mine = claim;
              break
#ifndef NO_CONDITION
           :: else -> expected = claim
#endif
           fi
       }
    od;
    known = version;
    atomic {
        if
        :: fence > mine -> goto end
        :: else
        fi;
#ifndef NO_STAMP
        fence = mine;
        version++;
        known = version;
#endif
        isTold[me] = isLive;
        isOpen[me] = true
    };
    if
    :: me == 2 -> goto end
    :: else
    fi;
    do
    :: atomic {
           if
           :: version == known -> isLive = false; fence = mine; version++; break
           :: else ->
              known = version;
#ifndef NO_FENCE
              if
              :: fence > mine -> break
              :: else
              fi
#endif
           fi
       }
    od;
end: skip
}

init {
    run Connection(1);
    isGone[1] = true;
    run Connection(2);
    /* The second connection holds the device, and what it was told is true. */
    timeout -> assert(!isOpen[2] || (holder == 2 && isLive == isTold[2]))
}
