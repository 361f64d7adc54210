extension Duration {
    /// The time limit of what a test does not expect to end by time: on a busy machine everything takes longer.
    package static var patience: Duration { .seconds(600) }
}
