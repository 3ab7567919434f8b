import { readCsrfToken } from '#api/call.ts'
import { Button } from '#parts/button.tsx'
import { tellOthers } from '#session/session-state.ts'

/** A form that leaves the page: the gateway ends the session, and the one at its provider. */
export function SignOut() {
  return (
    <form
      method="post"
      action="/auth/sign_out"
      onSubmit={({ currentTarget }) => {
        const field = currentTarget.elements.namedItem('csrf')
        if (field instanceof HTMLInputElement) field.value = readCsrfToken() ?? ''
        tellOthers()
      }}
    >
      <input type="hidden" name="csrf" />
      <Button type="submit">Sign out</Button>
    </form>
  )
}
