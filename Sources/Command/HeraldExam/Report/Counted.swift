/// Counts in words.
enum Counted {
    /// "1 push", "2 pushes".
    static func pushes(_ count: Int) -> String { count == 1 ? "1 push" : "\(count) pushes" }

    /// "1 request", "2 requests".
    static func some(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

    /// "1 of 5 pushes was", "2 of 5 pushes were", "1 push was".
    static func pushes(_ count: Int, of all: Int) -> String {
        let share = all == 1 ? "1 push" : "\(count) of \(all) pushes"
        return "\(share) \(count == 1 ? "was" : "were")"
    }
}
