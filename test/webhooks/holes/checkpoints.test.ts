/**
 * What counting by checkpoints makes of the stories in the files beside this one that are about more than acts in turn: each test has
 * its counterpart there. The numbers are wrong, and stay so whatever is done later.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { NaiveInstance, NaiveStore } from './naive.ts'

const SECOND = 1_000_000

describe('counting by checkpoints', () => {
  let store: NaiveStore
  let instance: NaiveInstance
  let other: NaiveInstance
  let now = 0
  /** A summary exists: one dead job of `k`, counted. */
  beforeEach(() => {
    store = new NaiveStore()
    instance = new NaiveInstance(store)
    other = new NaiveInstance(store)
    now = 1_000 * SECOND
    store.consumer('k')
    store.consumer('l')
    store.die('first', 'k', now)
    checkpoint()
  })

  /** Later, counts again. */
  function checkpoint(by = instance): void {
    now += SECOND
    by.checkpoint(now)
    now += SECOND
  }
  /** What is told and what is there, when several more checkpoints have had the chance to put it right. */
  const inTheEnd = (consumer = 'k'): readonly [counted: number, actual: number] => {
    for (let i = 0; i < 3; i++) checkpoint()
    return [store.counted(consumer), store.actual(consumer)]
  }
  const until = (run: Generator<string>, step: string): void => {
    while (run.next().value !== step);
  }
  const finish = (run: Generator<string>): void => {
    for (const _ of run);
  }

  // H5
  it('misses a death that began before a checkpoint and was committed after it', () => {
    const beganAt = now
    store.die('counted', 'k', now)
    checkpoint()
    store.die('late', 'k', beganAt)
    expect(inTheEnd()).toEqual([2, 3])
  })

  // H7
  it('misses a death while it counts', () => {
    store.die('before', 'k', now)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'counted')
    store.die('during', 'k', ++now)
    now++
    finish(run)
    expect(inTheEnd()).toEqual([2, 3])
  })

  // H8
  it('counts twice what two count at once', () => {
    store.die('job', 'k', now++)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'counted')
    instance.release()
    other.checkpoint(now)
    finish(run)
    expect(inTheEnd()).toEqual([3, 2])
  })

  // H9
  it('counts twice when a lock that was held for long is taken away', () => {
    store.die('job', 'k', now++)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'counted')
    now += 600 * SECOND
    store.removeOldLocks(now - 300 * SECOND)
    other.checkpoint(now)
    finish(run)
    expect(inTheEnd()).toEqual([3, 2])
  })

  // H10
  it('counts twice when somebody gives back the lock of another', () => {
    store.die('job', 'k', now++)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'counted')
    const skipped = other.checkpointInSteps(() => now)
    expect(skipped.next().done).toBe(true)
    other.release()
    other.checkpoint(now)
    finish(run)
    expect(inTheEnd()).toEqual([3, 2])
  })

  it('never counts again when the holder of the lock crashed', () => {
    until(
      instance.checkpointInSteps(() => now),
      'locked',
    )
    store.die('job', 'k', ++now)
    checkpoint(other)
    expect(inTheEnd()).toEqual([1, 2])
  })

  // H11
  it('is too high for ever when a crash comes between the delete and the count', () => {
    store.crashesBeforeSubtracting = true
    instance.remove('first', 'k')
    store.crashesBeforeSubtracting = false
    expect(inTheEnd()).toEqual([1, 0])
  })

  // H12
  it('misses the second consumer when a crash comes behind the first', () => {
    store.die('of k', 'k', now)
    store.die('of l', 'l', now)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'added')
    // By the time somebody has removed its lock, the first is counted up to then, and so is everybody.
    other.release()
    expect([inTheEnd('k'), inTheEnd('l')]).toEqual([
      [2, 2],
      [0, 1],
    ])
  })

  // H14
  it('misses an hour of deaths after a checkpoint of an instance whose clock is an hour ahead', () => {
    store.die('job', 'k', now++)
    other.checkpoint(now + 3_600 * SECOND)
    for (let i = 0; i < 3; i++) {
      store.die(`job ${i}`, 'k', now)
      checkpoint()
    }
    expect(inTheEnd()).toEqual([2, 5])
  })

  // H15
  it('is wrong from the start when jobs move during the first count', () => {
    store = new NaiveStore()
    instance = new NaiveInstance(store)
    store.consumer('k')
    store.die('a', 'k', now++)
    store.die('b', 'k', now++)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'counted')
    instance.requeue('a')
    instance.remove('b', 'k')
    store.die('c', 'k', now++)
    finish(run)
    expect(inTheEnd()).toEqual([2, 1])
  })

  // H16
  it('counts all jobs at every tick as long as none is dead', () => {
    store = new NaiveStore()
    instance = new NaiveInstance(store)
    store.consumer('k')
    for (let tick = 0; tick < 5; tick++) checkpoint()
    expect(store.fullCounts).toBe(5)
  })

  // H17
  it('shows other numbers on instances that did not count, or did not delete', () => {
    expect([instance.gauge.get('k'), other.gauge.get('k')]).toEqual([1, undefined])
    checkpoint(other)
    other.remove('first', 'k')
    expect([instance.gauge.get('k'), other.gauge.get('k')]).toEqual([1, 0])
  })

  // H18
  it('shows nothing on an instance that just started', () => {
    expect(new NaiveInstance(store).gauge.get('k')).toBeUndefined()
  })

  // H20
  it('calls consumers as they were called when they were counted first', () => {
    store.run("UPDATE consumer SET name = 'Payments' WHERE id = 'k'")
    store.die('job', 'k', now)
    checkpoint()
    expect(store.rows("SELECT consumer_name FROM dlq_summary WHERE consumer = 'k'")).toEqual([
      { consumer_name: 'k' },
    ])
  })

  // H21
  it('shows a deleted consumer for ever', () => {
    instance.remove('first', 'k')
    store.removeConsumer('k')
    checkpoint()
    expect(instance.gauge.get('k')).toBe(0)
  })

  // H22
  it('is too high by all jobs of a purge that was interrupted', () => {
    for (let i = 0; i < 9; i++) store.die(`job ${i}`, 'k', now)
    checkpoint()
    store.crashesBeforeSubtracting = true
    instance.purge('k')
    store.crashesBeforeSubtracting = false
    expect(inTheEnd()).toEqual([10, 0])
  })

  // H23
  it('tells one consumer as it is and another as it was, in the middle of a checkpoint', () => {
    store.die('of k', 'k', now)
    store.die('of l', 'l', now)
    const run = instance.checkpointInSteps(() => now)
    until(run, 'added')
    expect([store.counted('k'), store.counted('l')]).toEqual([2, 0])
    finish(run)
    expect([store.counted('k'), store.counted('l')]).toEqual([2, 1])
  })

  // H24
  it('keeps an error for ever', () => {
    store.run("UPDATE dlq_summary SET dead_count = dead_count + 5 WHERE consumer = 'k'")
    expect(inTheEnd()).toEqual([6, 1])
  })

  // H25
  it('subtracts for a requeue that is rolled back', () => {
    // The job is changed in a transaction of its own, and the count behind it: what undoes the one leaves the other.
    instance.requeue('first')
    store.run("UPDATE job SET status = 1004 WHERE id = 'first'")
    expect(inTheEnd()).toEqual([0, 1])
  })
})
