import { useQuery } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { useEffect } from 'react'

import { Failed, Loading } from '#parts/states.tsx'
import { meQuery } from '#session/me.ts'
import { signInAddress } from '#session/return-to.ts'
import { beginSession, useSessionState } from '#session/session-state.ts'
import { Brand } from '#shell/brand.tsx'

import { router } from './router.tsx'

/** Nothing is shown of an organization before it is known who has signed in. */
export function App() {
  const state = useSessionState()
  if (state === 'ended') return <SignedOut />
  return state === 'none' ? <ToSignIn /> : <Entered />
}

function Entered() {
  const { data, error, refetch } = useQuery(meQuery)
  useEffect(() => {
    if (data) beginSession()
  }, [data])
  if (data) return <RouterProvider router={router} />
  return (
    <div className="alone">
      <Brand />
      {error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading rows={3} />}
    </div>
  )
}

const here = () => signInAddress(window.location.pathname)

function ToSignIn() {
  useEffect(() => window.location.replace(here()), [])
  return (
    <div className="alone">
      <Brand />
      <p>
        Going on to the sign-in. <a href={here()}>Sign in</a>
      </p>
    </div>
  )
}

/** What was on the page is gone: the person may have left, and another may be looking. */
function SignedOut() {
  return (
    <div className="alone" role="alert">
      <Brand />
      <h1>You have been signed out</h1>
      <p>
        Your session has ended: you or an administrator have ended it, or it was open too long. What
        you had not saved is lost.
      </p>
      <p>
        <a className="button primary" href={here()}>
          Sign in again
        </a>
      </p>
    </div>
  )
}
