package dev.headgate.spark.kafka;

import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Records, or one row of Spark's reader, as the columns of Spark's source, each value made when it is asked for. */
final class RecordColumns {
  /** Of key, value, topic, partition, offset, timestamp and its type; not read off a text, of which a session has a say what it means. */
  private static final List<DataType> TYPES =
      List.of(
          DataTypes.BinaryType,
          DataTypes.BinaryType,
          DataTypes.StringType,
          DataTypes.IntegerType,
          DataTypes.LongType,
          DataTypes.TimestampType,
          DataTypes.IntegerType);

  private static final int KEY = 0, PARTITION = 3, OFFSET = 4;

  private final ColumnarBatch batch;
  private final UTF8String topic; // one partition's records have one
  private List<ConsumerRecord<byte[], byte[]>> records;
  private InternalRow only; // null: there are records

  RecordColumns(String topic) {
    this.topic = UTF8String.fromString(topic);
    ColumnVector[] columns = new ColumnVector[TYPES.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new Column(TYPES.get(i), i);
    }
    batch = new ColumnarBatch(columns);
  }

  /** The same batch each time, of other records. */
  ColumnarBatch of(List<ConsumerRecord<byte[], byte[]>> polled) {
    records = new ArrayList<>(polled); // a part of a part of what was polled: looked up in one step from here
    batch.setNumRows(records.size());
    return batch;
  }

  /** The same batch, of one row and no records any more: several rows would be copies, of whatever size records have. */
  ColumnarBatch of(InternalRow row) {
    records = null;
    only = row;
    batch.setNumRows(1);
    return batch;
  }

  private final class Column extends ColumnVector {
    private final int ordinal;

    Column(DataType type, int ordinal) {
      super(type);
      this.ordinal = ordinal;
    }

    @Override
    public byte[] getBinary(int row) {
      if (only != null) {
        return only.getBinary(ordinal);
      }
      return ordinal == KEY ? records.get(row).key() : records.get(row).value();
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return topic;
    }

    @Override
    public int getInt(int row) {
      if (only != null) {
        return only.getInt(ordinal);
      }
      return ordinal == PARTITION ? records.get(row).partition() : records.get(row).timestampType().id;
    }

    /** An offset, or microseconds; of a time before 1970 as Spark has it, which may be of another calendar. */
    @Override
    public long getLong(int row) {
      if (only != null) {
        return only.getLong(ordinal);
      }
      if (ordinal == OFFSET) {
        return records.get(row).offset();
      }
      long millis = records.get(row).timestamp();
      return millis >= 0 ? millis * 1000 : DateTimeUtils.fromJavaTimestamp(new Timestamp(millis));
    }

    @Override
    public boolean isNullAt(int row) {
      return ordinal < 2 && (only != null ? only.isNullAt(ordinal) : getBinary(row) == null);
    }

    @Override
    public boolean hasNull() {
      return numNulls() > 0;
    }

    @Override
    public int numNulls() {
      int nulls = 0;
      for (int row = 0; row < batch.numRows(); row++) {
        nulls += isNullAt(row) ? 1 : 0;
      }
      return nulls;
    }

    @Override
    public void close() {}

    @Override
    public boolean getBoolean(int row) {
      throw notThere();
    }

    @Override
    public byte getByte(int row) {
      throw notThere();
    }

    @Override
    public short getShort(int row) {
      throw notThere();
    }

    @Override
    public float getFloat(int row) {
      throw notThere();
    }

    @Override
    public double getDouble(int row) {
      throw notThere();
    }

    @Override
    public ColumnarArray getArray(int row) {
      throw notThere();
    }

    @Override
    public ColumnarMap getMap(int row) {
      throw notThere();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      throw notThere();
    }

    @Override
    public ColumnVector getChild(int child) {
      throw notThere();
    }

    private UnsupportedOperationException notThere() {
      return new UnsupportedOperationException("Kafka's source has no column of " + type);
    }
  }
}
