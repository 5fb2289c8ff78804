"""What a run has learnt, beside what it would have learnt undisturbed; and what is printed of it."""


def equal_bit_by_bit(losses, others, before):
    """Steps before that one, and of these those in which a loss, of any time that the step was done, is another one."""
    steps = [step for step in losses if step < before]
    return steps, [step for step in steps if losses[step] != others.get(step)]


def farthest(losses, others, since=1):
    """The greatest relative distance of a loss from that step on, and its step."""
    apart = [(abs(loss - others[step][0]) / abs(others[step][0]), step)
             for step, all_of_it in losses.items() if step >= since and step in others for loss in all_of_it]
    return max(apart, default=(0.0, 0))


def table(faults):
    print("\n| at | fault | line | event | steps lost | s until it went on | |\n|---|---|---|---|---|---|---|")
    for one in faults:
        seconds = "NEVER" if one.seconds is None else f"{one.seconds:.1f}"
        line = one.line or one.proof or ("MISSING" if one.wants_line else "none expected")
        event = one.event or ("MISSING" if one.wants_event else "none expected")
        print(f"| {one.at:.0f} s | {one.what} | {line[:120]} | {event[:120]} | {one.lost} | {seconds} | "
              f"{'; '.join(one.objections) or ('ok' if one.passed else 'FAILED')} |")
    print()
