/// Part of a list of the ledger, in the order of its identifiers.
package struct LedgerPage<Item: Sendable>: Sendable {
    package let items: [Item]
    /// The identifier after which the next part begins; nil at the end of the list.
    package let next: String?

    package init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }

    /// Makes a part of items, of which one more than `limit` was read.
    package init(_ items: [Item], limit: Int, id: (Item) -> String) {
        self.items = Array(items.prefix(limit))
        next = items.count > limit ? self.items.last.map(id) : nil
    }
}

extension LedgerPage: Equatable where Item: Equatable {}
