/** Creates a queue. What the server refuses is said at the field that it is about. */
import {
  Alert,
  Autocomplete,
  Button,
  Checkbox,
  Code,
  Group,
  Modal,
  NumberInput,
  Stack,
  TextInput,
} from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { errorOfReply } from '../../../src/client/errors.ts'
import { createWithDeadQueue } from '../../../src/client/with-dead-queue.ts'
import { CallFailure, callQueues, reasonOf } from '../api/call.ts'
import { useToasts } from '../toasts/toasts.tsx'
import { createCommand, deadQueueRequestOf, FRESH, fieldOf, type NewQueue, requestOf } from './new-queue.ts'

export interface CreateQueueProps {
  readonly isOpen: boolean
  close(): void
  /** Queues that there are, to choose a dead queue from. */
  readonly known: readonly string[]
  created(name: string): void
}

export function CreateQueue({ isOpen, close, known, created }: CreateQueueProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title="Create a queue"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {isOpen && <Form close={close} known={known} created={created} />}
    </Modal>
  )
}

function Form({ close, known, created }: Omit<CreateQueueProps, 'isOpen'>) {
  const client = useQueryClient()
  const toasts = useToasts()
  const [queue, setQueue] = useState(FRESH)
  const create = useMutation({
    mutationFn: () =>
      createWithDeadQueue({
        create: () => callQueues<unknown>('queues.create', requestOf(queue)),
        createDeadQueue: () => callQueues<unknown>('queues.create', deadQueueRequestOf(queue)),
        codeOf: (thrown) =>
          thrown instanceof CallFailure ? errorOfReply(thrown.status, thrown.message).code : null,
      }),
    onSuccess: async ({ deadQueueMade }) => {
      await client.invalidateQueries({ queryKey: ['queues'] })
      toasts.show({
        title: deadQueueMade
          ? `Queue ${queue.name} is there, and its dead queue ${queue.deadQueue} with the same times`
          : `Queue ${queue.name} is there`,
      })
      close()
      created(queue.name)
    },
  })
  const refused = create.error === null ? null : fieldOf(reasonOf(create.error))
  const errorAt = (field: keyof NewQueue) => (refused?.field === field ? refused.reason : undefined)
  const set = <Field extends keyof NewQueue>(field: Field, value: NewQueue[Field]) => {
    create.reset()
    setQueue((before) => ({ ...before, [field]: value }))
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <TextInput
          label="Name"
          description="Without white space and '~'. It cannot be changed later."
          data-autofocus
          required
          value={queue.name}
          onChange={(event) => set('name', event.currentTarget.value)}
          error={errorAt('name')}
        />
        <Group grow align="flex-start">
          <TextInput
            label="Lease"
            description="Time with a consumer, such as 90s or 1h30m"
            required
            value={queue.leaseTimeout}
            onChange={(event) => set('leaseTimeout', event.currentTarget.value)}
            error={errorAt('leaseTimeout')}
          />
          <TextInput
            label="Life of an item"
            description="How long an item may wait before it is dead"
            required
            value={queue.expireTimeout}
            onChange={(event) => set('expireTimeout', event.currentTarget.value)}
            error={errorAt('expireTimeout')}
          />
        </Group>
        <Group grow align="flex-start">
          <NumberInput
            label="Attempts"
            description="Deliveries before an item is dead; 0 is no limit"
            min={0}
            max={65_536}
            allowDecimal={false}
            value={queue.maxAttempts}
            onChange={(value) => set('maxAttempts', Number(value))}
            error={errorAt('maxAttempts')}
          />
          <NumberInput
            label="Partitions"
            description="More of them let more consumers work at once"
            min={1}
            max={1_024}
            allowDecimal={false}
            value={queue.partitions}
            onChange={(value) => set('partitions', Number(value))}
            error={errorAt('partitions')}
          />
        </Group>
        <Autocomplete
          label="Dead queue"
          description="What dies goes there and becomes a letter. One that is missing is created first, with the same times. Left empty, what dies becomes a letter that lies in no queue."
          data={[...known]}
          value={queue.deadQueue}
          onChange={(value) => set('deadQueue', value)}
          error={errorAt('deadQueue')}
        />
        {queue.deadQueue === '' && (
          <Checkbox
            label="Delete what dies, without a letter"
            description="For a queue used as a timer, whose items expire by design"
            checked={queue.onDeath === 'delete'}
            onChange={(event) => set('onDeath', event.currentTarget.checked ? 'delete' : 'letter')}
            error={errorAt('onDeath')}
          />
        )}
        <TextInput
          label="Reference"
          description="A note of yours"
          value={queue.reference}
          onChange={(event) => set('reference', event.currentTarget.value)}
          error={errorAt('reference')}
        />
        {refused !== null && refused.field === null && (
          <Alert color="red" role="alert" title="The queue was not created">
            {refused.reason}
          </Alert>
        )}
        <div>
          The same on the command line: <Code block>{createCommand(queue)}</Code>
        </div>
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Create
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
