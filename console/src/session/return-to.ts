const shape = /^\/console(?:\/[\w-]{1,100}){0,10}$/

/** Where sign-in sends the browser back to: this page, if it is one that sign-in accepts. */
export function signInAddress(path: string): string {
  const trimmed = path.replace(/\/+$/, '')
  const returnTo = shape.test(trimmed) ? trimmed : '/console'
  return `/auth/sign_in?return_to=${returnTo}`
}
