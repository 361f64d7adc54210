import GRDB

/// Questions of an import to a store.
extension SQLiteStore {
    /// Whether it has devices, apps or channels: a node of a cluster keeps none here.
    package func hasContents() async throws -> Bool {
        try await readers.read { database in
            try ["device", "app", "channel"].contains { table in
                try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(table))") ?? false
            }
        }
    }

    /// The least generation of a new registration.
    package func generationFloor() async throws -> UInt32 {
        try await readers.read { try RegistryTable.generationFloor($0) }
    }
}
