import HeraldModel

/// Judges the machine's clock by what is known without a network.
struct ClockCheck {
    let now: WallTime
    /// The day of the commit of this binary; nil if it is unknown.
    var built: WallTime?
    /// The begin of the newest certificate of the service; nil if there is none.
    var certified: WallTime?
    /// Whether systemd's time service has set the clock; nil if another one may keep it.
    var isSynchronized: Bool?

    /// A certificate may be dated ahead by a clock that was right enough.
    private static let tolerance = Duration.seconds(3600)

    var finding: DoctorFinding {
        let remedy = "set the clock, or start a time service (systemctl enable --now systemd-timesyncd)"
        if let built, now < built {
            return .fail(
                "clock",
                "it is \(now.rfc3339), before this Herald was built (\(built.rfc3339.prefix(10)))",
                remedy
            )
        }
        if let certified, now + Self.tolerance < certified {
            return .fail("clock", "it is \(now.rfc3339), before the service's certificate was made", remedy)
        }
        if isSynchronized == false {
            return .warn("clock", "it is \(now.rfc3339), and the time service has not set the clock yet", remedy)
        }
        return .ok("clock", "it is \(now.rfc3339)" + (isSynchronized == true ? ", kept by a time service" : ""))
    }

    /// The day in the description of a commit: `3f605882a643, 2026-11-23`.
    static func day(ofCommit text: String) -> WallTime? {
        text.split(separator: " ").last.flatMap { WallTime(rfc3339: "\($0)T00:00:00Z") }
    }
}
