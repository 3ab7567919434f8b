const shape = /^\/(?:auth|console|docs)(?:\/[\w-]{1,100}){0,10}$/

export const defaultReturnPath = '/auth/session'

/** Where to go after a sign-in: a page of ours, so that no link can make a sign-in end elsewhere. */
export const readReturnPath = (text: unknown): string =>
  typeof text === 'string' && shape.test(text) ? text : defaultReturnPath
