/** What a browser or a person opens: a page, a form's destination, a redirect. Programs call endpoints instead. */
export type Page = {
  readonly id: string
  readonly summary: string
  readonly method: 'GET' | 'POST'
  readonly path: `/${string}`
  /** The largest form that it takes, in bytes. */
  readonly bodyLimitBytes: number
}

const formLimitBytes = 16 * 1024

const page = <const Id extends string>(
  id: Id,
  method: Page['method'],
  path: Page['path'],
  summary: string,
) => ({ id, summary, method, path, bodyLimitBytes: formLimitBytes }) as const satisfies Page

/** Sign-in (docs/specification/sign-in.md). */
export const showSignIn = page('showSignIn', 'GET', '/auth/sign_in', 'All ways to sign in')
export const showSession = page('showSession', 'GET', '/auth/session', 'Who has signed in')
export const listProviders = page('listProviders', 'GET', '/auth/providers', 'The ways to sign in')
export const signInWithKey = page('signInWithKey', 'POST', '/auth/key', 'Sign in with a key')
export const showLink = page('showLink', 'GET', '/auth/link', 'A link that signs in')
export const signInWithLink = page('signInWithLink', 'POST', '/auth/link', 'Sign in with a link')
export const showInvitation = page(
  'showInvitation',
  'GET',
  '/auth/invitation',
  'The invitation of a member',
)
export const acceptInvitation = page(
  'acceptInvitation',
  'POST',
  '/auth/invitation',
  'Sign in as the member who was invited',
)
export const showDevice = page('showDevice', 'GET', '/auth/device', 'Confirm a device')
export const confirmDevice = page(
  'confirmDevice',
  'POST',
  '/auth/device/confirm',
  'What a device asks for, and whether it may',
)
export const requestDevice = page(
  'requestDevice',
  'POST',
  '/auth/device',
  'Where a program without a browser asks for a session',
)
export const pollDevice = page(
  'pollDevice',
  'POST',
  '/auth/device/token',
  'Where the program gets its session once it is confirmed',
)
export const signOut = page('signOut', 'POST', '/auth/sign_out', 'Sign out')
export const beginSignInPage = page(
  'beginSignInPage',
  'GET',
  '/auth/:provider',
  'Sign in with a provider',
)
export const finishSignInPage = page(
  'finishSignInPage',
  'GET',
  '/auth/:provider/callback',
  'Where a provider sends the browser back to',
)
export const backchannelLogout = page(
  'backchannelLogout',
  'POST',
  '/auth/:provider/backchannel_logout',
  'Where a provider says that it has ended a sign-in',
)
export const readStyle = page('readStyle', 'GET', '/auth/style.css', 'The style of these pages')
export const readAddressScript = page(
  'readAddressScript',
  'GET',
  '/auth/address-form.js',
  'The script of pages that links with a secret open',
)

/** The console (docs/console.md). Its paths below are pages of the browser's, but for files and their names. */
export const openConsole = page('openConsole', 'GET', '/console', 'To the console')
export const showConsole = page('showConsole', 'GET', '/console/*', 'The console, and its files')

/** Every page that is served. No page needs a credential in the header Authorization. */
export const pages = [
  showSignIn,
  showSession,
  listProviders,
  signInWithKey,
  showLink,
  signInWithLink,
  showInvitation,
  acceptInvitation,
  showDevice,
  confirmDevice,
  requestDevice,
  pollDevice,
  signOut,
  beginSignInPage,
  finishSignInPage,
  backchannelLogout,
  readStyle,
  readAddressScript,
  openConsole,
  showConsole,
] as const satisfies readonly Page[]
