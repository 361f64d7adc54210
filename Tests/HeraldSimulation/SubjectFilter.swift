import HeraldCluster

/// The filters of a follower, as a log of the tests applies them.
struct SubjectFilter: Sendable {
    private let filters: [[Substring]]

    init(_ filters: [LogSubject]) {
        self.filters = filters.map { $0.text.split(separator: ".", omittingEmptySubsequences: false) }
    }

    func matches(_ subject: LogSubject) -> Bool {
        let parts = subject.text.split(separator: ".", omittingEmptySubsequences: false)
        return filters.contains { filter in
            let isOpen = filter.last == ">"
            guard isOpen ? parts.count >= filter.count : parts.count == filter.count else { return false }
            return zip(parts, isOpen ? filter.dropLast() : filter[...]).allSatisfy { $1 == "*" || $0 == $1 }
        }
    }
}
