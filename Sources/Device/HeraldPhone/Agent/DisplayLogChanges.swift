/// The newest display records that changed since a revision of the display log.
package struct DisplayLogChanges: Codable, Hashable, Sendable {
    /// The present revision; it begins anew when the agent starts.
    package var revision: Int
    /// The number of records in the log.
    package var count: Int
    /// The records, in the order of arrival.
    package var records: [DisplayRecord]
}
