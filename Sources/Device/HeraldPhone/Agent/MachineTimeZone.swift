import Foundation

/// The machine's time zone, looked up anew each time: Foundation keeps the one of the process's start.
enum MachineTimeZone {
    /// Its name, like `Europe/Berlin`.
    static func name() -> String {
        // A variable with a rule instead of a name is left to Foundation.
        if let variable = getenv("TZ").map({ String(cString: $0) }) {
            return known(variable.drop { $0 == ":" }) ?? TimeZone.current.identifier
        }
        let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/etc/localtime")
        return link?.components(separatedBy: "zoneinfo/").last.flatMap { known($0) } ?? TimeZone.current.identifier
    }

    private static func known(_ name: some StringProtocol) -> String? {
        TimeZone(identifier: String(name)) == nil ? nil : String(name)
    }
}
