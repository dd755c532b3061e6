/** How a redrive is to go: where to, at which pace, what ends it, in which order, changed how, and why. */
import { Anchor, Autocomplete, Group, NativeSelect, NumberInput, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { queuesQuery } from '../api/queries.ts'
import { isSending, ORDERS, type RedriveAction, type RedriveOrder } from '../api/redrive-types.ts'
import { CAREFUL, type Draft, type DraftField, type DraftProblem } from './plan-draft.ts'
import { PlanRepair } from './plan-repair.tsx'

export interface PlanFieldsProps {
  readonly act: RedriveAction
  readonly draft: Draft
  /** Shown at its field. */
  readonly problem: DraftProblem | null
  readonly change: (changes: Partial<Draft>) => void
}

const ORDER_WORDS: Readonly<Record<RedriveOrder, string>> = {
  key: 'Kept for each key',
  capture: 'Kept for all, one by one',
  none: 'Not kept',
}

export function PlanFields({ act, draft, problem, change }: PlanFieldsProps) {
  const errorAt = (field: DraftField) => (problem?.field === field ? problem.says : undefined)
  const reason = useRef<HTMLTextAreaElement>(null)
  // The dialog chooses what to focus before the plan is there.
  useEffect(() => {
    if (act !== 'move') reason.current?.focus({ preventScroll: true })
  }, [act])
  return (
    <Stack gap="sm">
      {act === 'move' && (
        <QueueField queue={draft.queue} error={errorAt('queue')} change={(queue) => change({ queue })} />
      )}
      <Textarea
        label="Reason"
        description={
          act === 'discard' ? 'Kept with each letter.' : 'Optional; kept with the redrive and in history.'
        }
        required={act === 'discard'}
        autosize
        minRows={1}
        maxRows={6}
        maxLength={4_000}
        data-autofocus={act === 'move' ? undefined : true}
        ref={reason}
        value={draft.reason}
        error={errorAt('reason')}
        onChange={(event) => change({ reason: event.currentTarget.value })}
      />
      <div className="plan-terms">
        <OptionalNumber
          label="At most per second"
          description="To each destination. Empty: as fast as it goes."
          value={draft.rate}
          min={0}
          max={1_000_000}
          allowDecimal
          error={errorAt('rate')}
          set={(rate) => change({ rate })}
        />
        {isSending(act) && (
          <>
            <OptionalNumber
              label="Try so many first"
              description="Waits for their outcomes, ten minutes at most. Empty: none."
              value={draft.canary}
              min={1}
              max={10_000}
              error={errorAt('canary')}
              set={(canary) => change({ canary })}
            />
            {draft.canary !== null && (
              <NumberInput
                label="% confirmed of these"
                description="With fewer it goes no further."
                min={0}
                max={100}
                allowDecimal={false}
                hideControls
                value={draft.confirmPercent}
                onChange={(value) => change({ confirmPercent: Number(value) })}
              />
            )}
            <OptionalNumber
              label="Stop above % returned"
              description="Empty: it never stops by itself."
              value={draft.stopPercent}
              min={0}
              max={99}
              error={errorAt('stopRule')}
              set={(stopPercent) => change({ stopPercent })}
            />
            {draft.stopPercent !== null && (
              <NumberInput
                label="Of the last outcomes"
                description="How many the rule looks at."
                min={1}
                max={10_000}
                allowDecimal={false}
                hideControls
                value={draft.stopOf}
                onChange={(value) => change({ stopOf: Number(value) })}
              />
            )}
            <NativeSelect
              label="Order of capture"
              description="Kept for each key, different keys go at once."
              data={ORDERS.map((order) => ({ value: order, label: ORDER_WORDS[order] }))}
              value={draft.order}
              error={errorAt('order')}
              onChange={(event) => {
                const order = ORDERS.find((each) => each === event.currentTarget.value)
                if (order !== undefined) change({ order })
              }}
            />
          </>
        )}
      </div>
      {isSending(act) && <Careful draft={draft} change={change} />}
      {isSending(act) && <PlanRepair draft={draft} errorAt={errorAt} change={change} />}
    </Stack>
  )
}

function Careful({ draft, change }: Pick<PlanFieldsProps, 'draft' | 'change'>) {
  if (draft.canary !== null || draft.stopPercent !== null) return null
  return (
    <Group gap="xs">
      <Text size="sm">Not sure that the cause is gone?</Text>
      <Anchor component="button" type="button" size="sm" onClick={() => change(CAREFUL)}>
        Try ten first, and stop when more than 20 % of 100 return
      </Anchor>
    </Group>
  )
}

function QueueField({
  queue,
  error,
  change,
}: {
  readonly queue: string
  readonly error: string | undefined
  readonly change: (queue: string) => void
}) {
  const { data } = useQuery(queuesQuery())
  return (
    <Autocomplete
      label="To queue"
      description="Each is put there as a new item. The queue must exist."
      required
      data-autofocus
      data={data?.items.map(({ name }) => name) ?? []}
      value={queue}
      error={error}
      onChange={change}
    />
  )
}

interface OptionalNumberProps {
  readonly label: string
  readonly description: string
  readonly value: number | null
  readonly min: number
  readonly max: number
  readonly allowDecimal?: boolean
  readonly error: string | undefined
  readonly set: (value: number | null) => void
}

/** A number that may be left out. What is out of range is left to the server, which says why. */
function OptionalNumber({ value, set, allowDecimal = false, ...field }: OptionalNumberProps) {
  return (
    <NumberInput
      {...field}
      allowDecimal={allowDecimal}
      allowNegative={false}
      clampBehavior="none"
      hideControls
      value={value ?? ''}
      onChange={(typed) => set(typed === '' ? null : Number(typed))}
    />
  )
}
