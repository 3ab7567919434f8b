/** The client has closed its connection, so no answer is expected any more. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
  constructor() {
    super('The client is gone.')
  }
}
