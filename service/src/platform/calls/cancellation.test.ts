import { expect, test } from 'vitest'

import { Cancellation, cancellationOf } from './cancellation.ts'

const hungUp = new Error('hung up')

function follow(cancellation: Cancellation) {
  const heard: Error[] = []
  const follower = { cancel: (reason: Error) => void heard.push(reason) }
  cancellation.add(follower)
  return { heard, follower }
}

test('what is not cancelled has no reason and throws nothing', () => {
  const cancellation = new Cancellation()
  cancellation.throwIfCancelled()
  expect([cancellation.isCancelled, cancellation.reason]).toEqual([false, undefined])
})

test('every follower hears the first reason, once', () => {
  const cancellation = new Cancellation()
  const followers = [follow(cancellation), follow(cancellation)]
  cancellation.cancel(hungUp)
  cancellation.cancel(new Error('later'))
  expect(followers.map(({ heard }) => heard)).toEqual([[hungUp], [hungUp]])
  expect(cancellation.reason).toBe(hungUp)
  expect(() => cancellation.throwIfCancelled()).toThrow(hungUp)
})

test('who follows later hears it at once, and who was removed does not', () => {
  const cancellation = new Cancellation()
  const removed = follow(cancellation)
  cancellation.remove(removed.follower)
  cancellation.cancel(hungUp)
  expect(removed.heard).toEqual([])
  expect(follow(cancellation).heard).toEqual([hungUp])
})

test('one cancellation follows another', () => {
  const process = new Cancellation()
  const call = new Cancellation()
  process.add(call)
  process.cancel(hungUp)
  expect(call.reason).toBe(hungUp)
})

test('a follower may remove itself and others while it is told', () => {
  const cancellation = new Cancellation()
  const other = follow(cancellation)
  const leaving = {
    cancel() {
      cancellation.remove(leaving)
      cancellation.remove(other.follower)
    },
  }
  cancellation.add(leaving)
  cancellation.cancel(hungUp)
  expect(other.heard).toEqual([hungUp])
})

test('no follower is kept: neither after it was removed nor after the cancellation', () => {
  const cancellation = new Cancellation()
  const { follower } = follow(cancellation)
  follow(cancellation)
  expect(cancellation.followers).toBe(2)
  cancellation.remove(follower)
  expect(cancellation.followers).toBe(1)
  cancellation.cancel(hungUp)
  follow(cancellation)
  expect(cancellation.followers).toBe(0)
})

test('its signal aborts with the same reason, whenever it is asked for', () => {
  const cancellation = new Cancellation()
  const { signal } = cancellation
  expect([signal.aborted, cancellation.signal]).toEqual([false, signal])
  cancellation.cancel(hungUp)
  expect([signal.aborted, signal.reason]).toEqual([true, hungUp])
  const late = new Cancellation()
  late.cancel(hungUp)
  expect([late.signal.aborted, late.signal.reason]).toEqual([true, hungUp])
})

test('a cancellation follows a signal', () => {
  const controller = new AbortController()
  const cancellation = cancellationOf(controller.signal)
  expect(cancellation.isCancelled).toBe(false)
  controller.abort(hungUp)
  expect(cancellation.reason).toBe(hungUp)
  expect(cancellationOf(controller.signal).reason).toBe(hungUp)
})
