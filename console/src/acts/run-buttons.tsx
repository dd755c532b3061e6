/** What can be done with a run: pause, go on, cancel; what is left of an ended one can be planned again. */
import { Button, Group } from '@mantine/core'
import { usePlan } from './plan-context.ts'
import { isActive, type Run, remainingOf } from './run.ts'
import { useRuns } from './runs-context.ts'

export function RunButtons({ run }: { readonly run: Run }) {
  const { pause, goOn, cancel } = useRuns()
  const plan = usePlan()
  if (isActive(run)) {
    return (
      <Group gap="xs">
        {run.state === 'running' ? (
          <Button size="compact-sm" variant="default" onClick={() => pause(run.id)}>
            Pause
          </Button>
        ) : (
          <Button size="compact-sm" onClick={() => goOn(run.id)}>
            Go on
          </Button>
        )}
        <Button size="compact-sm" variant="default" onClick={() => cancel(run.id)}>
          Cancel
        </Button>
      </Group>
    )
  }
  if (remainingOf(run) + run.failed === 0) return null
  const again = () =>
    plan({
      act: run.act,
      filter: run.filter,
      what: run.what,
      ...(run.keys === null ? {} : { keys: run.keys }),
    })
  return (
    <Group gap="xs">
      <Button size="compact-sm" variant="default" onClick={again}>
        Plan the rest…
      </Button>
    </Group>
  )
}
