import type { Me } from '@gatehouse/contract/members/me'
import { useSyncExternalStore } from 'react'

const subscribe = (listener: () => void) => {
  addEventListener('online', listener)
  addEventListener('offline', listener)
  return () => {
    removeEventListener('online', listener)
    removeEventListener('offline', listener)
  }
}

/** What holds for every page at the moment. */
export function Banners({ me }: { me: Me }) {
  const isOnline = useSyncExternalStore(subscribe, () => navigator.onLine)
  return (
    <div role="status">
      {!isOnline && (
        <p className="banner">
          You are offline. What you see may be old; it is read again once you are back.
        </p>
      )}
      {me.read_only && (
        <p className="banner">
          The operator of this gateway lets the console read only. Changes are made elsewhere.
        </p>
      )}
    </div>
  )
}
