/// Where those who are to be under way at the same time wait for each other; nobody waits in a meeting of one.
package actor Meeting {
    private var size = 1
    private var present: [CheckedContinuation<Void, Never>] = []

    package init() {}

    /// From now on so many have to be there before they go on together.
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
