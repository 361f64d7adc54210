import Foundation
package import HeraldConsole

/// `trust/console.tokens`: the named tokens of the console, as hashes.
package struct ConsoleTokenFile {
    package let folder: DataFolder

    package init(folder: DataFolder) {
        self.folder = folder
    }

    /// Reads the file; no tokens if there is none.
    /// - Throws: ``CommandError`` if it is damaged or cannot be read.
    package func read() throws -> ConsoleTokens {
        let path = folder.consoleTokensPath
        guard access(path, F_OK) == 0 else { return ConsoleTokens() }
        guard let tokens = ConsoleTokens(json: try SafeFile.read(path, isSecret: true)) else {
            throw CommandError(
                .folder,
                "\(path) is damaged: restore it from a backup, or remove it; then each tool needs a new token "
                    + "(`herald console token`)"
            )
        }
        return tokens
    }

    /// Writes the file.
    package func write(_ tokens: ConsoleTokens) throws {
        do {
            try SafeFile.write(try tokens.json(), to: folder.consoleTokensPath, mode: 0o600)
        } catch let error as CommandError {
            throw AdminError(.failed, error.message)
        }
    }
}
