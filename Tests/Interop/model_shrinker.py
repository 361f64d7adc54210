"""Makes a failing history short before people read it."""


def shrink(steps, fails, tries=60):
    """Fewer and simpler steps with which `fails` is still true; it is asked at most `tries` times.

    Halves, quarters and single steps are left out (delta debugging); then each step that is left is made simpler.
    """
    budget = iter(range(tries))

    def still(some):
        return bool(some) and next(budget, None) is not None and fails(some)

    size = len(steps) // 2
    while size:
        shorter, at = False, 0
        while at < len(steps):
            rest = steps[:at] + steps[at + size:]
            if still(rest):
                steps, shorter = rest, True
            else:
                at += size
        if not (shorter and size == 1):
            size //= 2
    for at, step in enumerate(steps):
        for other in simpler(step):
            some = [*steps[:at], other, *steps[at + 1:]]
            if still(some):
                steps = some
                break
    return steps


def simpler(step):
    """The simplest forms of a step, the simplest first."""
    kind, *arguments = step
    match kind, arguments:
        case "post", [device, topic, manner, size, prompt, seconds, stale]:
            forms = [("plain", 1, False, 9, False), (manner, 1, prompt, seconds, stale), ("plain", size, prompt, 9, False)]
            return [other for form in forms if (other := (kind, device, topic, *form)) != step]
        case "connect", [device, *_]:
            plain = (kind, device, 5, True, 3600, None)
            return [plain] if plain != step else []
        case "kill", [size, *more] if size:
            return [(kind, 0, *more)]
        case "full", [device, topic, size, act]:
            forms = [(1, ""), (1, act), (size, "")]
            return [other for form in forms if (other := (kind, device, topic, *form)) != step]
    return []
