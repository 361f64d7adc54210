/// A barrier for concurrent calls of a test; a meeting of one does not wait.
package actor Meeting {
    private var size = 1
    private var present: [CheckedContinuation<Void, Never>] = []

    package init() {}

    /// Sets the number of calls that wait for each other.
    package func setSize(_ size: Int) {
        self.size = size
    }

    package func come() async {
        await withCheckedContinuation { continuation in
            present.append(continuation)
            guard present.count >= size else { return }
            for continuation in present { continuation.resume() }
            present = []
        }
    }
}
