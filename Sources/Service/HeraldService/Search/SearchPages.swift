import HeraldConsole

/// Lines that one node found, newest first.
package struct NodeSearchPage: Codable, Hashable, Sendable {
    struct Item: Codable, Hashable, Sendable {
        let entry: JournalEntry
        /// The place after the line in the node's journal.
        let next: String
    }

    let items: [Item]
    /// Where the node's search goes on; nil if it has read all.
    let next: String?
    /// The earliest time that it has come to, or nil.
    let searchedBackTo: String?
}

/// The places of a search in the journals of several nodes; the text of a page's cursor.
struct SearchCursor: Hashable, Sendable, LosslessStringConvertible {
    /// The longest text that is read, in bytes.
    static let maximumBytes = 8192

    /// By node, an empty name for a service that stands alone; an empty place is the newest line.
    ///
    /// A node that has read all is absent.
    var places: [String: String]

    init(_ places: [String: String]) {
        self.places = places
    }

    init?(_ description: String) {
        guard !description.isEmpty, description.utf8.count <= SearchCursor.maximumBytes else { return nil }
        places = [:]
        for part in description.split(separator: ".", omittingEmptySubsequences: false) {
            let pair = part.split(separator: "~", omittingEmptySubsequences: false)
            guard pair.count == 2 else { return nil }
            places[String(pair[0])] = String(pair[1])
        }
    }

    var description: String {
        places.sorted { $0.key < $1.key }.map { "\($0.key)~\($0.value)" }.joined(separator: ".")
    }
}

/// One page of the lines of several nodes.
struct MergedSearch: Hashable, Sendable {
    private(set) var items: [JournalEntry] = []
    /// Nil if all nodes have read all.
    private(set) var cursor: SearchCursor?
    /// The latest of the times up to which each node that is not at its end has searched.
    private(set) var searchedBackTo: String?

    /// Merges pages, by node; `asked` has the places that they began at, and those of nodes without a page stay.
    init(_ pages: [String: NodeSearchPage], asked: SearchCursor, limit: Int) {
        var taken: [String: Int] = [:]
        let nodes = pages.keys.sorted()
        while items.count < limit {
            var newest: (node: String, entry: JournalEntry)?
            for node in nodes {
                guard let page = pages[node], page.items.count > taken[node, default: 0] else { continue }
                let entry = page.items[taken[node, default: 0]].entry
                // The times have one form, so their texts have their order.
                if newest.map({ entry.time > $0.entry.time }) ?? true { newest = (node, entry) }
            }
            guard let newest else { break }
            items.append(newest.entry)
            taken[newest.node, default: 0] += 1
        }
        var places = asked.places
        for (node, page) in pages {
            let count = taken[node, default: 0]
            places[node] =
                if count == page.items.count {
                    page.next
                } else {
                    count == 0 ? asked.places[node] : page.items[count - 1].next
                }
            if page.next != nil { searchedBackTo = [searchedBackTo, page.searchedBackTo].compactMap(\.self).max() }
        }
        cursor = places.isEmpty ? nil : SearchCursor(places)
    }
}
