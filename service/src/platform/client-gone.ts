/** Whoever asked has hung up: nobody waits for an answer any more. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
  constructor() {
    super('The client is gone.')
  }
}
