/// Part of a list, in the order of its keys.
package struct Page<Item: Codable & Sendable>: Codable, Sendable {
    package let items: [Item]
    /// The key after which the next part begins, for `after`; nil at the end of the list.
    package let next: String?

    package init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }

    /// Cuts a part out of a whole list that is in memory.
    package init(_ all: [Item], _ request: PageRequest, key: (Item) -> String) {
        let rest = all.map { (key: key($0), item: $0) }.filter { $0.key > request.after ?? "" }
            .sorted { $0.key < $1.key }
        items = rest.prefix(request.limit).map(\.item)
        next = rest.count > request.limit ? rest[request.limit - 1].key : nil
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(items, forKey: .items)
        try container.encode(next, forKey: .next)
    }
}

extension Page: Equatable where Item: Equatable {}

/// Request for a part of a list: `?limit=N&after=KEY`.
package struct PageRequest: Hashable, Sendable {
    /// The allowed numbers of entries, and the number without `limit`.
    package static let limits = 1...1000
    package static let standard = 100
    package let limit: Int
    package let after: String?
}
